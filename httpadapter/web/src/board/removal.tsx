// What is taken away for ever: a task, and a customer from all tasks that are kept.

import { useEffect, useRef, useState } from 'preact/hooks';
import { query } from './api';
import type { Board } from './board';
import { First, useAsked } from './fields';
import { nameOf, type Task } from './model';
import { digitsOf } from '../shared/digits';
import type { Contact } from '../shared/place';

/** Whether a task may be deleted as it is. */
export const deletable = (task: Task): boolean => task.status === 'completed' || (task.status === 'created' && !task.waiting);

/** Why a task may not be deleted as it is: the key of a text. */
export const undeletable = (task: Task): string => 'board.delete.not.' + (task.status === 'created' ? 'waiting' : task.status);

/** Whom to meet, of those whose number is known, each once. */
export function contacts(task: Task): Contact[] {
  const seen = new Map<string, Contact>();
  for (const p of [task.pickup, task.drop]) {
    const digits = digitsOf(p?.customer?.mobile);
    if (digits && !seen.has(digits)) seen.set(digits, p!.customer!);
  }
  return [...seen.values()];
}

/** Last of all, as nothing of it comes back. */
export function Removal({ board, task }: { board: Board; task: Task }) {
  const { t } = board;
  const [asking, setAsking] = useState(''); // about the task, or about the customer of these digits
  const customers = contacts(task);
  useAsked(board, 'delete', task, () => {
    if (deletable(task)) setAsking('task');
    else board.say(t(undeletable(task), { task: nameOf(task) }), true);
  });
  if (!deletable(task) && customers.length === 0) return null;
  const customer = customers.find((c) => digitsOf(c.mobile) === asking);
  return (
    <section class="part removal" aria-labelledby="removal">
      <h3 id="removal">{t('board.removal.title')}</h3>
      {asking === 'task' && deletable(task) && <Delete board={board} task={task} onBack={() => setAsking('')} />}
      {customer && <Erase key={asking} board={board} customer={customer} onBack={() => setAsking('')} />}
      {!(asking === 'task' && deletable(task)) && !customer && (
        <div class="buttons">
          {deletable(task) && (
            <button type="button" class="other bad" aria-keyshortcuts="Delete" onClick={() => setAsking('task')}>
              {t('board.delete.button')}
            </button>
          )}
          {customers.map((c) => (
            <button key={digitsOf(c.mobile)} type="button" class="other bad" onClick={() => setAsking(digitsOf(c.mobile))}>
              {t('board.erase.of', { name: c.name || c.mobile! })}
            </button>
          ))}
        </div>
      )}
    </section>
  );
}

function Delete({ board, task, onBack }: { board: Board; task: Task; onBack: () => void }) {
  const { t } = board;
  const send = async (e: Event) => {
    e.preventDefault();
    if (await board.remove(task)) board.close();
  };
  return (
    <form onSubmit={(e) => void send(e)}>
      <p>{t('board.delete.text', { task: nameOf(task) })}</p>
      <p class="buttons">
        <First words={t('board.cancel.keep')} onClick={onBack} />
        <button class="do bad" disabled={board.isBusy(task.task_id)}>
          {t('board.delete.button')}
        </button>
      </p>
    </form>
  );
}

/** Asks about a customer with the tasks of that number, of which none may be open. */
function Erase({ board, customer, onBack }: { board: Board; customer: Contact; onBack: () => void }) {
  const { t } = board;
  const mobile = customer.mobile!;
  const digits = digitsOf(mobile);
  const [read, setRead] = useState<Task[] | null>(null);
  const [failed, setFailed] = useState(false);
  const [sending, setSending] = useState(false);
  const over = useRef(false);
  const look = async () => {
    const list = await tasksOf(board, digits);
    if (over.current) return;
    setFailed(list === null);
    setRead(list);
  };
  useEffect(() => {
    void look();
    return () => void (over.current = true);
  }, []);
  const now = (read ?? []).map((x) => newest(board, x)).filter((x) => contacts(x).some((c) => digitsOf(c.mobile) === digits));
  const open = now.filter((x) => x.status !== 'completed');
  const send = async (e: Event) => {
    e.preventDefault();
    setSending(true);
    const done = await board.erase(customer, now);
    setSending(false);
    if (done) return onBack();
    await look(); // one may have been opened meanwhile
  };
  return (
    <form onSubmit={(e) => void send(e)}>
      <p>{t('board.erase.text', { name: [customer.name, mobile].filter(Boolean).join(', ') })}</p>
      <p>{t('board.erase.stays')}</p>
      {failed && <p class="note warn">{t('board.read.failed')}</p>}
      {!read && !failed && <p class="calm">{t('board.loading')}</p>}
      {open.length > 0 && (
        <div class="note warn" role="alert">
          <p>{t('board.erase.open')}</p>
          <ul>
            {open.map((x) => (
              <li key={x.task_id}>
                <a href={'#task/' + encodeURIComponent(x.task_id)}>{nameOf(x)}</a> · {t('board.status.' + x.status)}
              </li>
            ))}
          </ul>
        </div>
      )}
      <p class="buttons">
        <First words={t('board.cancel.keep')} onClick={onBack} />
        <button class="do bad" disabled={sending || !read || open.length > 0}>
          {t(now.length === 1 ? 'board.erase.button.one' : 'board.erase.button', { n: now.length })}
        </button>
      </p>
    </form>
  );
}

/** A task that was read, as it is by now. */
function newest(board: Board, read: Task): Task {
  const known = board.task(read.task_id);
  return known && known.version >= read.version ? known : read;
}

/** The tasks in which a number stands, as a search finds them; null: they could not be read. */
async function tasksOf(board: Board, digits: string): Promise<Task[] | null> {
  const all: Task[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const a = await board.api.call('GET', query('/v1/task/list', { q: digits, limit: 1000, after }));
    if (a.kind !== 'ok') return null;
    all.push(...(a.data.task_list as Task[]));
    after = a.data.next as string | undefined;
  }
  return all;
}
