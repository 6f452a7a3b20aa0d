// What has expired is deleted, but not by a clock that is ahead for a while.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { type DeletionClockState, deletionClock, parseState } from '../../src/store/deletion-clock.ts';
import { openStore } from '../../src/store/open.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { every, until } from '../support/wait-until.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = 1_800_000_000_000;

describe('what has expired is deleted by a clock that', () => {
  /** How long the process has run, and how far its clock is wrong, milliseconds. */
  let passed: number;
  let wrong: number;
  let deletion: () => number;
  const begin = () => {
    deletion = deletionClock({ wall: () => START + passed + wrong, elapsed: () => passed });
  };
  beforeEach(() => {
    [passed, wrong] = [0, 0];
    begin();
  });
  /** Time goes by; the store looks at the clock again and again. */
  const passes = (time: number) => {
    for (const end = passed + time; passed < end; deletion()) passed += Math.min(10 * SECOND, end - passed);
  };
  const isRight = () => expect(deletion()).to.equal(START + passed);

  it('knows no time in the first hour: whether the one that a process begins at is right, nobody knows', () => {
    passes(59 * MINUTE);
    expect(deletion()).to.equal(0);
    passes(MINUTE);
    isRight();
  });

  for (const [what, leap] of Object.entries({ 'an hour': HOUR, 'a day': DAY, 'a year': 365 * DAY })) {
    it(`goes on at its pace while the time is ${what} ahead and is put right within the hour`, () => {
      passes(HOUR);
      wrong = leap;
      isRight();
      passes(59 * MINUTE);
      isRight();
      wrong = 0;
      isRight();
      // Each leap counts for an hour of its own.
      wrong = leap;
      passes(59 * MINUTE);
      isRight();
    });
  }

  it('follows a leap after an hour: it was the old time that was wrong', () => {
    passes(HOUR);
    wrong = DAY;
    passes(HOUR + 10 * SECOND);
    expect(deletion()).to.equal(START + passed + DAY);
  });

  it('follows no time that leaps again and again, further or back', () => {
    passes(HOUR);
    for (const leap of [3, 2, 5, 1]) {
      wrong = leap * DAY;
      passes(50 * MINUTE);
      isRight();
    }
  });

  it('follows one that is put forward a little at a time, and one that is put back, at once', () => {
    passes(HOUR);
    for (let n = 0; n < 5; n += 1) {
      wrong += 50 * SECOND;
      expect(deletion()).to.equal(START + passed + wrong);
    }
    wrong = -DAY;
    expect(deletion()).to.equal(START + passed - DAY);
  });

  /** Processes that run one after another: each is left what the one before it noted. */
  const runs = (long: number, down: number) => {
    const begins = START + passed + wrong;
    const left = note;
    const base = passed;
    const clock = deletionClock({ wall: () => START + passed + wrong, elapsed: () => passed - base, left });
    deletion = clock;
    const told = clock();
    passes(long);
    note = clock.state();
    passed += down;
    return { begins, told };
  };
  let note: DeletionClockState | undefined;
  beforeEach(() => {
    note = undefined;
  });

  it('counts where no process lives for an hour: they have run for one since it was so late', () => {
    for (let n = 0; n < 6; n += 1) expect(runs(10 * MINUTE, DAY).told).to.equal(0);
    // Six of ten minutes have run since the first began, and that time counts.
    runs(10 * MINUTE, DAY);
    expect(note?.believed).to.be.within(START, START + HOUR);
    for (let n = 0; n < 12; n += 1) runs(10 * MINUTE, DAY);
    expect(note?.believed).to.be.within(START + 6 * DAY, START + passed);
  });

  it('was believed a moment before by another process', () => {
    runs(HOUR, 10 * SECOND);
    const { begins, told } = runs(MINUTE, 10 * SECOND);
    expect(told).to.equal(begins);
  });

  it('is not believed by one that begins while it is a year ahead, however often', () => {
    runs(HOUR, 10 * SECOND);
    wrong = 365 * DAY;
    for (let n = 0; n < 5; n += 1) runs(10 * MINUTE, 10 * SECOND);
    expect(note?.believed).to.be.at.most(START + passed);
    wrong = 0;
    const { begins, told } = runs(MINUTE, 0);
    expect(told).to.equal(begins);
    wrong = 365 * DAY;
    runs(50 * MINUTE, 0);
    expect(note?.believed).to.be.at.most(START + passed);
  });

  it('takes no note that is none', () => {
    for (const text of [
      undefined,
      '',
      '{',
      'null',
      '{"believed":1}',
      '{"believed":"x","since":0,"watched":0}',
    ])
      expect(parseState(text), text).to.equal(undefined);
  });

  it('has the embedded store keep what a wrong time hides, and delete all else', async () => {
    const dataDir = await mkdtemp(join(SCRATCH, 'gatehouse-deletion-'));
    const clock = () => START + passed + wrong;
    const store = await openStore({ dataDir, clock, elapsed: () => passed });
    const artifacts = store.collection('artifacts');
    const put = (id: string, expiresAt: number) =>
      artifacts.put({ id, model: 'Session', payload: {}, expiresAt: expiresAt / 1000 });
    const deleted = (id: string) => until(() => !onDisk(dataDir).includes(id), every(50));
    passed = HOUR;
    await put('good', clock() + 30 * MINUTE);
    await put('over', clock() - SECOND);
    await deleted('over');
    wrong = 365 * DAY;
    expect(await artifacts.get('good')).to.equal(undefined);
    await put('over', START + passed - SECOND);
    await deleted('over');
    wrong = 0;
    expect(await artifacts.get('good')).to.include({ id: 'good' });
    await put('over', START + passed - SECOND);
    await deleted('over');
    passed += MINUTE;
    await until(() => existsSync(join(dataDir, 'deletion-time')), every(50));
    await store.close();
    // The next process believes what this one has.
    const began = passed;
    const next = await openStore({ dataDir, clock, elapsed: () => passed - began });
    await next
      .collection('artifacts')
      .put({ id: 'late', model: 'Session', payload: {}, expiresAt: clock() / 1000 - 1 });
    await deleted('late');
    expect(onDisk(dataDir)).to.deep.equal(['good']);
    await next.close();
    await rm(dataDir, { recursive: true });
  });
});

function onDisk(dataDir: string): unknown[] {
  const database = new DatabaseSync(join(dataDir, 'store/gatehouse.db'), { readOnly: true });
  const rows = database.prepare('SELECT id FROM artifacts').all();
  database.close();
  return rows.map(({ id }) => id);
}
