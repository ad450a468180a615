// The list of a day, to look through and to take along as CSV.

import { useEffect, useState } from 'preact/hooks';
import { query } from './api';
import type { Board } from './board';
import { separatorOf, writeCSV } from './csv';
import { driverName, ms, type Task } from './model';
import { FoundTask } from './searchpanel';
import { dayOf, dayText, instant, readDay } from './when';

const pageSize = 1000;
const shown = 200;

/** The tasks of a day: those whose window begins in it, and those without one that were created in it. */
async function readDayList(board: Board, from: number, to: number): Promise<Task[] | null> {
  const all = new Map<string, Task>();
  for (const by of ['window', 'created']) {
    let after: string | undefined;
    do {
      const a = await board.api.call('GET', query('/v1/task/list', { [by + '_from']: new Date(from).toISOString(), [by + '_to']: new Date(to).toISOString(), limit: pageSize, after }));
      if (a.kind !== 'ok') return null;
      for (const task of a.data.task_list as Task[]) if (by === 'window' || !task.window) all.set(task.task_id, task);
      after = a.data.next as string | undefined;
    } while (after);
  }
  const at = (x: Task) => ms(x.window?.from ?? x.window?.to ?? x.created_at);
  return [...all.values()].sort((a, b) => at(a) - at(b));
}

export function DayPanel({ board }: { board: Board; of: string }) {
  const { t } = board;
  const { time_zone: zone } = board.config;
  const [date, setDate] = useState(() => dayText(dayOf(board.now(), zone)));
  const [list, setList] = useState<Task[] | null>(null);
  const [failed, setFailed] = useState(false);
  const day = readDay(date, { now: 0, zone, monthFirst: false })?.day;
  useEffect(() => {
    if (!day) return;
    let over = false;
    setList(null);
    setFailed(false);
    void readDayList(board, instant(day, 0, zone), instant({ ...day, day: day.day + 1 }, 0, zone)).then((found) => {
      if (over) return;
      setFailed(found === null);
      setList(found);
    });
    return () => void (over = true);
  }, [date]);
  const download = () => {
    const url = URL.createObjectURL(new Blob([writeCSV(table(board, list!), separatorOf(board.config.lang))], { type: 'text/csv;charset=utf-8' }));
    const a = document.createElement('a');
    a.href = url;
    a.download = date + '.csv';
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return (
    <>
      <div class="field">
        <label for="day">{t('board.day.date')}</label>
        <input id="day" type="date" value={date} onChange={(e) => e.currentTarget.value && setDate(e.currentTarget.value)} />
      </div>
      <p class="calm" role="status">
        {failed ? t('board.read.failed') : list ? t('board.day.n', { n: list.length }) : t('board.loading')}
      </p>
      <p class="buttons">
        <button type="button" class="do" disabled={!list || list.length === 0} onClick={download}>
          {t('board.day.csv')}
        </button>
      </p>
      <ul class="found">{list?.slice(0, shown).map((task) => <FoundTask key={task.task_id} board={board} task={board.task(task.task_id) ?? task} />)}</ul>
      {list && list.length > shown && <p class="hint">{t('board.paste.hidden', { n: list.length - shown })}</p>}
    </>
  );
}

/** A list as a table, with headers that a paste knows again. */
export function table(board: Pick<Board, 't' | 'config' | 'driver'>, list: readonly Task[]): string[][] {
  const { t } = board;
  const at = (time: string | undefined) => {
    if (!time) return '';
    const parts = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short', timeZone: board.config.time_zone });
    return parts.format(ms(time));
  };
  const head = ['order_id', 'address', 'name', 'mobile', 'from', 'to', 'notes', 'pickup_address', 'pickup_name', 'pickup_mobile'].map((c) => t('board.column.' + c));
  const more = ['state', 'driver', 'created', 'started', 'ended', 'reason', 'received_by'].map((c) => t('board.csv.' + c));
  const rows = list.map((x) => [
    x.order_id ?? '',
    x.drop?.address ?? '',
    x.drop?.customer?.name ?? '',
    x.drop?.customer?.mobile ?? '',
    at(x.window?.from),
    at(x.window?.to ?? x.promised),
    x.notes ?? '',
    x.pickup?.address ?? '',
    x.pickup?.customer?.name ?? '',
    x.pickup?.customer?.mobile ?? '',
    x.status === 'completed' ? t('board.outcome.' + x.outcome) : t('board.status.' + x.status),
    x.driver_id ? driverName(board.driver(x.driver_id), x.driver_id) : '',
    at(x.created_at),
    at(x.started_at),
    at(x.completed_at),
    [x.reason_code && (board.config.reasons[x.reason_code] ?? x.reason_code), x.reason].filter(Boolean).join(': '),
    x.received_by ?? '',
  ]);
  return [[...head, ...more], ...rows];
}
