// A process that has no file descriptor left for a moment: many connections, or many files elsewhere.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openLowdbStore } from '../../src/store/lowdb.ts';
import type { DescriptorReport } from './processes/descriptor-writer.ts';

const program = fileURLToPath(new URL('./processes/descriptor-writer.ts', import.meta.url));

describe('lowdb store without a file descriptor for the next journal segment', () => {
  let dataDir: string;
  let report: DescriptorReport;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-descriptors-'));
    const command = 'ulimit -n 100; exec "$0" "$1" "$2"';
    const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, program, dataDir]);
    report = JSON.parse(stdout);
  });
  after(() => rm(dataDir, { recursive: true }));

  it('goes on writing to the segment it has', () => {
    for (const { refused, ready } of report.rounds) {
      expect(refused).to.deep.equal([]);
      expect(ready).to.equal('resolved');
    }
  });

  it('begins the next one as soon as it can', () => {
    expect(report.rounds.map(({ newest }) => newest)).to.deep.equal([2, 3, 4]);
  });

  it('says so once each time', () => {
    for (const { said } of report.rounds) {
      expect(said.filter((line) => line.includes('next segment'))).to.have.length(1);
    }
  });

  it('opens again with all that was acknowledged, and nothing is left over', async () => {
    const store = await openLowdbStore({ dataDir, clock: Date.now });
    const { records } = await store.collection('users').list({ limit: 100_000 });
    const found = Object.fromEntries(records.map(({ id, logins_count }) => [id, logins_count]));
    expect(found).to.deep.equal(report.acknowledged);
    await store.close();
    const left = (await readdir(join(dataDir, 'store'))).filter((name) => /^journal|tmp$/.test(name));
    expect(left).to.deep.equal([]);
  });
});
