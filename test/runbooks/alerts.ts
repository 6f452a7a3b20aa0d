// Judges real metrics by the alerts in deploy/prometheus: what a server says in two scrapes is continued for as long as
// the alerts take, at the rates that were measured, and given to promtool. It is Prometheus' own evaluation.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';

const RULES = fileURLToPath(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url));

/** The series of a process at one time; undefined if it did not answer. */
export interface Scrape {
  /** Milliseconds. */
  at: number;
  values: ReadonlyMap<string, number> | undefined;
  counters: ReadonlySet<string>;
}

/** A state of the server: two scrapes in it, in the same process. */
export interface Phase {
  minutes: number;
  from: Scrape;
  to: Scrape;
  /** The alerts that fire at its end, all of them. */
  firing: readonly string[];
  /** Whether Prometheus does not know the process, so that there is not even `up`. */
  isAbsent?: boolean;
  /** Others that may fire as well. */
  possible?: readonly string[];
}

/** Alerts that may fire in any state, because other programs may keep the machine busy, and so do the tests. */
const OF_A_BUSY_MACHINE = [
  'GatehouseEventLoopLags',
  'GatehousePasswordsWait',
  'GatehouseSlow',
  'GatehouseStoreSlow',
];

/** Reads a process's metrics. */
export async function scrape(url: string): Promise<Scrape> {
  const answer = await fetch(url).catch(() => undefined);
  const at = performance.now();
  if (answer?.status !== 200) return { at, values: undefined, counters: new Set() };
  const text = await answer.text();
  const counters = new Set<string>();
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    if (type === 'counter') counters.add(name);
    if (type === 'histogram') for (const end of ['bucket', 'sum', 'count']) counters.add(`${name}_${end}`);
  }
  const lines = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)];
  const values = new Map(lines.map(([, name, labels = '', value]) => [`${name}{${labels}}`, Number(value)]));
  return { at, values, counters };
}

/** Where promtool is, of Debian's package `prometheus`; undefined where it is not installed. */
export function promtool(): string | undefined {
  const program = process.env.PROMTOOL ?? 'promtool';
  return spawnSync(program, ['--version']).status === 0 ? program : undefined;
}

/** @throws Error with promtool's words when other alerts fire at the end of a phase than it says. */
export function expectAlerts(program: string, phases: readonly Phase[]): void {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-alerts-'));
  try {
    const file = join(directory, 'test.yaml');
    const ends = phases.map((_, i) => phases.slice(0, i + 1).reduce((all, { minutes }) => all + minutes, 0));
    const promql = phases.map(({ firing, possible = [] }, i) => {
      const others = [...OF_A_BUSY_MACHINE, ...possible].filter((name) => !firing.includes(name));
      return {
        expr: `group by (alertname) (ALERTS{alertstate="firing",alertname!~"${others.join('|')}"})`,
        eval_time: `${Number(ends[i]) - 1}m`,
        exp_samples: firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      };
    });
    const tests = [{ interval: '1m', input_series: series(phases), promql_expr_test: promql }];
    writeFileSync(
      file,
      stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }, { lineWidth: 0 }),
    );
    const { status, stdout, stderr } = spawnSync(program, ['test', 'rules', file], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`the alerts are others than expected:\n${stdout}${stderr}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const MISSING = '_';
/** Prometheus marks a series that a scrape no longer has. */
const STALE = 'stale';

function series(phases: readonly Phase[]): { series: string; values: string }[] {
  const names = new Set(
    phases.flatMap(({ from, to }) => [from, to].flatMap(({ values }) => [...(values?.keys() ?? [])])),
  );
  const labelled = (name: string) =>
    name.replace(
      /\{(.*)\}$/,
      (_, labels: string) => `{job="gatehouse",instance="gatehouse:9464"${labels && `,${labels}`}}`,
    );
  const up = phases.flatMap(({ minutes, to, isAbsent }) =>
    Array(minutes).fill(isAbsent ? MISSING : to.values === undefined ? 0 : 1),
  );
  return [
    { series: labelled('up{}'), values: up.join(' ') },
    ...[...names].map((name) => ({ series: labelled(name), values: valuesOf(name, phases).join(' ') })),
  ];
}

/** Returns a series by the minute. Counters go on at their rate and start anew in a new process only. */
function valuesOf(name: string, phases: readonly Phase[]): (number | string)[] {
  const values: (number | string)[] = [];
  let last: { shown: number; real: number } | undefined;
  for (const { minutes, from, to } of phases) {
    const real = to.values?.get(name);
    if (real === undefined) {
      values.push(
        ...Array.from({ length: minutes }, (_, i) => (i === 0 && last !== undefined ? STALE : MISSING)),
      );
      last = undefined;
      continue;
    }
    const isCounter = to.counters.has(name.slice(0, name.indexOf('{')));
    const before = from.values?.get(name) ?? 0;
    const perMinute = isCounter ? ((real - before) / (to.at - from.at)) * 60_000 : 0;
    const isNew = last === undefined || before < last.real;
    const start = !isCounter ? real : isNew ? before : Number(last?.shown);
    for (let minute = 1; minute <= minutes; minute++) values.push(start + perMinute * minute);
    last = { shown: start + perMinute * minutes, real };
  }
  return values;
}
