// What has happened to a task, and by whom.

import { useEffect, useState } from 'preact/hooks';
import { query } from './api';
import type { Board } from './board';
import { detail, type TaskEvent } from './events';
import { driverName, ms } from './model';

const late = 120_000; // ms from when it happened till it was told, worth a word

export function History({ board, task, version }: { board: Board; task: string; version: number }) {
  const { t } = board;
  const [events, setEvents] = useState<TaskEvent[] | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let over = false;
    void board.api.call('GET', query('/v1/events', { task_id: task, limit: 1000 })).then((a) => {
      if (over) return;
      setFailed(a.kind !== 'ok');
      if (a.kind === 'ok') setEvents(a.data.events as TaskEvent[]);
    });
    return () => void (over = true);
  }, [task, version]);
  const words = board.config.words;
  const said = (e: TaskEvent): string => {
    const d = detail(e);
    const text = d && words[d.key];
    if (!text) return '';
    return (/^board\.detail\.(to|from|fields)/.test(d.key) ? ' ' : ' · ') + told(d);
  };
  const told = (d: { key: string; of: string }): string => {
    if (d.key === 'board.detail.fields') return t(d.key, { fields: d.of.split(',').map((f) => words['board.field.' + f.trim()] ?? f).join(', ') });
    if (d.key === 'board.detail.promised') return t(d.key, { time: board.times.shown(ms(d.of), board.now()) });
    return t(d.key, { name: driverName(board.driver(d.of), d.of) });
  };
  return (
    <section class="part" aria-labelledby="history">
      <h3 id="history">{t('board.history')}</h3>
      {failed && <p class="note warn">{t('board.read.failed')}</p>}
      {!events && !failed && <p class="calm">{t('board.loading')}</p>}
      {events?.length === 0 && <p class="calm">{t('board.history.none')}</p>}
      {events && (
        <ol class="history">
          {events.map((e) => (
            <li key={e.id}>
              <time dateTime={e.time}>{board.times.shown(ms(e.time), board.now())}</time>
              <span class="what">
                {words['board.event.' + e.type] ?? e.type}
                <bdi>{said(e)}</bdi>
                {e.data['reason_code'] && <> · {board.config.reasons[e.data['reason_code']] ?? e.data['reason_code']}</>}
                {ms(e.recorded_at) - ms(e.time) > late && <> · {t('board.detail.told', { time: board.times.shown(ms(e.recorded_at), board.now()) })}</>}
              </span>
              <bdi class="who">{board.actor(e.actor)}</bdi>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
