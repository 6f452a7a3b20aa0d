// Expired records are deleted, but not by a clock that is temporarily ahead.
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

describe('the clock by which expired records are deleted', () => {
  /** How long the process has run, and how far its clock is wrong, in milliseconds. */
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
  /** Lets time pass while the store reads the clock again and again. */
  const passes = (time: number) => {
    for (const end = passed + time; passed < end; deletion()) passed += Math.min(10 * SECOND, end - passed);
  };
  const isRight = () => expect(deletion()).to.equal(START + passed);

  it('trusts no time in the first hour, since the time at which a process starts may be wrong', () => {
    passes(59 * MINUTE);
    expect(deletion()).to.equal(0);
    passes(MINUTE);
    isRight();
  });

  for (const [what, leap] of Object.entries({ 'an hour': HOUR, 'a day': DAY, 'a year': 365 * DAY })) {
    it(`keeps its pace while the machine's clock is ${what} ahead and is corrected within an hour`, () => {
      passes(HOUR);
      wrong = leap;
      isRight();
      passes(59 * MINUTE);
      isRight();
      wrong = 0;
      isRight();
      // Each jump starts an hour of its own.
      wrong = leap;
      passes(59 * MINUTE);
      isRight();
    });
  }

  it('follows a jump that lasts for an hour, since then the old time was wrong', () => {
    passes(HOUR);
    wrong = DAY;
    passes(HOUR + 10 * SECOND);
    expect(deletion()).to.equal(START + passed + DAY);
  });

  it('does not follow a clock that jumps repeatedly, ahead or back', () => {
    passes(HOUR);
    for (const leap of [3, 2, 5, 1]) {
      wrong = leap * DAY;
      passes(50 * MINUTE);
      isRight();
    }
  });

  it('follows small corrections ahead, and any correction back, at once', () => {
    passes(HOUR);
    for (let n = 0; n < 5; n += 1) {
      wrong += 50 * SECOND;
      expect(deletion()).to.equal(START + passed + wrong);
    }
    wrong = -DAY;
    expect(deletion()).to.equal(START + passed - DAY);
  });

  /** Runs one process after another, each with the state that the previous one stored. */
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

  it('trusts a time after processes have run for an hour in total since, where none lives for an hour', () => {
    for (let n = 0; n < 6; n += 1) expect(runs(10 * MINUTE, DAY).told).to.equal(0);
    // Six processes have run for ten minutes each since the first began, so that time is trusted.
    runs(10 * MINUTE, DAY);
    expect(note?.believed).to.be.within(START, START + HOUR);
    for (let n = 0; n < 12; n += 1) runs(10 * MINUTE, DAY);
    expect(note?.believed).to.be.within(START + 6 * DAY, START + passed);
  });

  it('trusts the start time at once if another process trusted a time just before', () => {
    runs(HOUR, 10 * SECOND);
    const { begins, told } = runs(MINUTE, 10 * SECOND);
    expect(told).to.equal(begins);
  });

  it("is not moved ahead by short-lived processes while the machine's clock is a year ahead", () => {
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

  it('ignores a stored state that is malformed', () => {
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

  it('makes the embedded store keep records that a wrong clock hides, and delete all other expired ones', async () => {
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
    // The next process trusts the time that this one has stored.
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
