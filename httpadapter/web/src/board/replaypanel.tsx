// A trip looked at again: where the driver was, moment by moment.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { LngLat } from '../shared/geo';
import type { LiveMap } from '../shared/map';
import type { Board } from './board';
import { Choice } from './fields';
import { driverName } from './model';
import { momentAt, readPath, speeds, type PathFix } from './replay';

const drawn = 2_000; // fixes of the path

interface TripDetail {
  agent_id: string;
  tracking_id: string;
  started_at?: string;
  ended_at?: string;
  distance: number;
  moving_seconds: number;
}

export function ReplayPanel({ board, of }: { board: Board; of: string }) {
  const { t } = board;
  const [trip, setTrip] = useState<TripDetail | null>(null);
  const [path, setPath] = useState<PathFix[] | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let over = false;
    const id = encodeURIComponent(of);
    void Promise.all([board.api.call('GET', '/v1/trips/' + id), board.api.call('GET', '/v1/triphistory/' + id)]).then(([a, b]) => {
      if (over) return;
      if (a.kind !== 'ok' || b.kind !== 'ok') return setFailed(true);
      setTrip(a.data.trip as TripDetail);
      setPath(readPath(b.data.loc));
    });
    return () => void (over = true);
  }, [of]);
  if (failed) return <p class="note warn">{t('board.read.failed')}</p>;
  if (!trip || !path) return <p class="calm">{t('board.loading')}</p>;
  return (
    <>
      <p class="panel-lead">
        <a href={'#driver/' + encodeURIComponent(trip.agent_id)}>{driverName(board.driver(trip.agent_id), trip.agent_id)}</a>
        {trip.distance > 0 && <> · {board.metres(trip.distance)}</>} · {t('board.replay.moving', { n: Math.round(trip.moving_seconds / 60) })}
      </p>
      {path.length < 2 ? <p class="calm">{t('board.replay.none')}</p> : <Player board={board} path={path} />}
      {board.task(trip.tracking_id) && (
        <p>
          <a href={'#task/' + encodeURIComponent(trip.tracking_id)}>{t('board.replay.task')}</a>
        </p>
      )}
    </>
  );
}

/** Whether it is night for the reader. */
function useDark(): boolean {
  const night = useMemo(() => matchMedia('(prefers-color-scheme: dark)'), []);
  const [dark, setDark] = useState(night.matches);
  useEffect(() => {
    const look = () => setDark(night.matches);
    night.addEventListener('change', look);
    return () => night.removeEventListener('change', look);
  }, [night]);
  return dark;
}

function Player({ board, path }: { board: Board; path: PathFix[] }) {
  const { t } = board;
  const first = path[0]!.time;
  const last = path.at(-1)!.time;
  const [at, setAt] = useState(first);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<number>(30);
  const box = useRef<HTMLDivElement>(null);
  const map = useRef<LiveMap | null>(null);
  const [ready, setReady] = useState(false);
  const dark = useDark();
  const moment = useMemo(() => momentAt(path, at)!, [path, at]);
  const every = Math.ceil(path.length / drawn);

  useEffect(() => {
    let gone = false;
    void import('../shared/map').then(({ LiveMap }) => {
      if (gone) return;
      map.current = new LiveMap({
        element: box.current!,
        map: board.config.map,
        tiles: board.config.tiles,
        lang: board.config.lang,
        t,
        dark,
        reducedMotion: true, // the slider moves it
        label: t('board.replay.map'),
        whole: true,
      });
      const end = path.at(-1)!.at;
      map.current.setPins([
        { kind: 'to', label: t('board.replay.end'), at: end, aim: false },
        { kind: 'from', label: t('board.replay.start'), at: path[0]!.at, aim: false },
      ]);
      setReady(true);
    });
    return () => {
      gone = true;
      map.current?.remove();
      map.current = null;
      setReady(false);
    };
  }, [path, dark]);

  useEffect(() => {
    const driven: LngLat[] = [];
    for (let i = 0; i < moment.passed; i += every) driven.push(path[i]!.at);
    map.current?.setFix({ at: moment.at, heading: moment.heading, time: at }, [...driven, moment.at], t('track.map.driver'), !moment.silent);
  }, [moment, ready]);

  useEffect(() => {
    if (!playing) return;
    let frame = 0;
    let before = performance.now();
    const step = (now: number) => {
      const gone = now - before;
      before = now;
      setAt((x) => Math.min(last, x + gone * speed));
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, last]);
  useEffect(() => {
    if (at >= last) setPlaying(false);
  }, [at, last]);

  const time = board.times.clock(at);
  return (
    <div class="player">
      <div class="player-map" ref={box} />
      <label class="slider">
        <span>{t('board.replay.when')}</span>
        <input type="range" min={first} max={last} step={1000} value={at} aria-valuetext={time} onInput={(e) => (setPlaying(false), setAt(Number(e.currentTarget.value)))} />
      </label>
      <p class="player-time">
        <time dateTime={new Date(at).toISOString()}>{board.times.shown(at, board.now())}</time>
        {moment.silent && <span class="hint"> · {t('board.replay.silent')}</span>}
      </p>
      <div class="buttons">
        <button type="button" class="do" onClick={() => (at >= last && setAt(first), setPlaying(!playing))}>
          {t(playing ? 'board.replay.pause' : 'board.replay.play')}
        </button>
        <Choice bare label={t('board.replay.speed')} value={String(speed)} onChange={(v) => setSpeed(Number(v))} options={speeds.map((s) => [String(s), t('board.replay.times', { n: s })] as const)} />
      </div>
    </div>
  );
}
