// A search that takes too long is abandoned and does not delay others.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { QueryTimeout } from '../../src/store/contract.ts';
import { type SearchThreads, searchThreads, startThread } from '../../src/store/sqlite/sqlite-store.ts';

/** Counts for many seconds, but not for ever, because nothing can stop it. */
const count = (to: number) => ({
  read: {
    sql: `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ${to}) SELECT count(*) AS n FROM n`,
    parameters: [],
  },
});
const QUICK = { read: { sql: 'SELECT 7 AS n', parameters: [] } };

const onLinux = process.platform === 'linux' ? it : it.skip;

describe('searches of the store', () => {
  let directory: string;
  let file: string;
  let threads: SearchThreads;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-search-'));
    file = join(directory, 'test.db');
    new DatabaseSync(file).close();
  });
  after(() => rmSync(directory, { recursive: true, force: true }));
  afterEach(() => threads.end());
  const open = (longest: number) => {
    threads = searchThreads(() => startThread(file, []), longest);
  };
  const outcome = (answer: Promise<object[]>) => answer.catch((error: Error) => error);

  it('are answered beside one that takes long', async () => {
    open(30_000);
    const long = outcome(threads.ask(count(3_000_000)));
    let isLongOver = false;
    void long.then(() => {
      isLongOver = true;
    });
    for (let n = 0; n < 5; n++) expect(await threads.ask(QUICK)).to.deep.equal([{ n: 7 }]);
    expect(isLongOver).to.equal(false);
    expect(await long).to.deep.equal([{ n: 3_000_000 }]);
  });

  onLinux('give way to logins on a busy processor', async () => {
    // proc_pid_stat(5): the 19th field is the nice value, here of a thread. The second field may contain spaces.
    const niceOf = (stat: string) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
    const ofThreads = () =>
      readdirSync('/proc/self/task').map((id) => niceOf(readFileSync(`/proc/self/task/${id}/stat`, 'utf8')));
    const own = niceOf(readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8'));
    const before = ofThreads().filter((nice) => nice > own).length;
    open(30_000);
    await threads.ask(QUICK);
    expect(ofThreads().filter((nice) => nice > own)).to.have.length(before + 1);
    expect(niceOf(readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8'))).to.equal(own);
  });

  it('are rejected at their time limit, and others go on', async () => {
    open(300);
    const many = await Promise.all([1, 2, 3, 4, 5, 6].map(() => outcome(threads.ask(count(9_000_000)))));
    for (const one of many) expect(one).to.be.instanceOf(QueryTimeout);
    const again = async (): Promise<unknown> => {
      const answer = await outcome(threads.ask(QUICK));
      return answer instanceof QueryTimeout ? again() : answer;
    };
    expect(await again()).to.deep.equal([{ n: 7 }]);
  });

  it('that fail report the error, and their thread is used again', async () => {
    open(30_000);
    const wrong = await outcome(threads.ask({ read: { sql: 'SELECT * FROM nowhere', parameters: [] } }));
    expect(wrong).to.be.instanceOf(Error).and.not.instanceOf(QueryTimeout);
    expect(await threads.ask(QUICK)).to.deep.equal([{ n: 7 }]);
  });
});
