// What has expired is deleted, but not by a clock that is ahead for a while.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import { deletionClock } from '../../src/store/purge.ts';
import { every, until } from '../support/patience.ts';
import { QUICK } from '../support/quick-directory.ts';

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

  it('has the embedded store keep what a wrong time hides, and delete all else', async () => {
    const dataDir = await mkdtemp(join(QUICK, 'gatehouse-deletion-'));
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
    await store.close();
    await rm(dataDir, { recursive: true });
  });
});

function onDisk(dataDir: string): unknown[] {
  const database = new DatabaseSync(join(dataDir, 'store/gatehouse.db'), { readOnly: true });
  const rows = database.prepare('SELECT id FROM artifacts').all();
  database.close();
  return rows.map(({ id }) => id);
}
