import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import { findAll, type Report } from './processes/crash-writer.ts';

const program = fileURLToPath(new URL('./processes/crash-writer.ts', import.meta.url));
/** A few kills take some seconds; `npm run test:long` makes more. */
const kills = Number(process.env.KILLS ?? 5);

/** The allowed values of each record: the last acknowledged one or, if a write was interrupted, the one it would have written. */
type Expected = Map<string, (string | null)[]>;

/** When a run is killed: while it opens what the previous one left, after some writes, or at any time. */
type Moment = 'opening' | 'late' | 'any';
/** The number of acknowledged writes before a late kill, however slow the machine is. */
const LATE = 300;
const moments: Moment[] = ['any', 'late', 'any', 'opening', 'any'];

interface Seen {
  acknowledged: number;
  verified: boolean;
}

/** Runs the writer on a directory, kills it at a random moment, and reads its report to the end. */
async function runAndKill(dataDir: string, run: number, moment: Moment, expected: Expected): Promise<Seen> {
  const child = spawn(process.execPath, [program, dataDir, String(run)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const killWithin = (milliseconds: number) => {
    setTimeout(() => child.kill('SIGKILL'), Math.random() * milliseconds).unref();
  };
  const seen: Seen = { acknowledged: 0, verified: false };
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const report = parse(line);
      if (report === undefined) continue;
      follow(report, expected, seen);
      if ('opening' in report && moment === 'opening') killWithin(60);
      if ('found' in report && moment !== 'late') killWithin(200);
      if ('acknowledged' in report && moment === 'late' && seen.acknowledged === LATE) killWithin(2000);
    }
  } finally {
    child.kill('SIGKILL');
  }
  expect((await closed)[1]).to.equal('SIGKILL');
  return seen;
}

function follow(report: Report, expected: Expected, seen: Seen): void {
  if ('found' in report) {
    verify(expected, report.found);
    seen.verified = true;
  } else if ('trying' in report) {
    expected.set(report.trying, [...(expected.get(report.trying) ?? [null]), report.value]);
  } else if ('acknowledged' in report) {
    expected.set(report.acknowledged, (expected.get(report.acknowledged) ?? []).slice(-1));
    seen.acknowledged++;
  }
}

/** Parses a line of the report; undefined for a line that the kill cut off. */
function parse(line: string): Report | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function verify(expected: Expected, found: [string, string][]): void {
  const actual = new Map(found);
  for (const key of actual.keys()) expect(expected.has(key), `${key} was never written`).to.equal(true);
  for (const [key, allowed] of expected) {
    const value = actual.get(key) ?? null;
    expect(allowed, key).to.include(value);
    expected.set(key, [value]);
  }
}

describe('the embedded store, killed while it writes', function () {
  this.timeout(600_000 + kills * 10_000);

  it(`keeps every acknowledged write over ${kills} kills, and opens after each`, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-crash-'));
    try {
      const expected: Expected = new Map();
      let acknowledged = 0;
      let verified = 0;
      for (let run = 0; run < kills; run++) {
        const seen = await runAndKill(dataDir, run, moments[run % moments.length] ?? 'any', expected);
        acknowledged += seen.acknowledged;
        verified += Number(seen.verified);
      }
      const store = await openStore({ dataDir, clock: Date.now });
      verify(expected, await findAll(store));
      await store.close();
      expect(verified, 'kills after which all was verified').to.be.at.least(kills / 2);
      expect(acknowledged).to.be.greaterThan(kills * 50);
    } finally {
      await rm(dataDir, { recursive: true });
    }
  });
});
