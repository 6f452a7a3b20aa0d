import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openLowdbStore } from '../../src/store/lowdb.ts';
import type { FullDiskReport } from './processes/full-disk-writer.ts';

const program = fileURLToPath(new URL('./processes/full-disk-writer.ts', import.meta.url));

describe('lowdb store on a disk that refuses to write', () => {
  let dataDir: string;
  let report: FullDiskReport;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-full-'));
    // No file may grow beyond 128 blocks of 512 or 1024 bytes, whichever the shell counts in.
    const command = 'ulimit -f 128; exec "$0" "$1" "$2"';
    const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, program, dataDir]);
    report = JSON.parse(stdout);
  });

  after(() => rm(dataDir, { recursive: true }));

  it('rejects the write, and shows what is on disk and nothing else', () => {
    expect(report.refused).not.to.deep.equal([]);
    expect([...report.visible].sort()).to.deep.equal([...report.acknowledged].sort());
    expect(report.readMeanwhile).to.equal(false);
    expect(report.emailIsFree).to.equal(true);
  });

  it('takes back an update as it takes back an insert', () => {
    expect(report.counter).to.equal(0);
  });

  it('is not ready, and read-only, from then on', () => {
    expect(report.ready).to.match(/EFBIG|too large/);
    expect(report.laterWrite).to.match(/read-only/);
    expect(report.logged).to.equal(1);
  });

  it('opens again with all that was acknowledged and nothing that was refused', async () => {
    const store = await openLowdbStore({ dataDir, clock: Date.now });
    const { records } = await store.collection('users').list({ limit: 100_000 });
    expect(records.map(({ id }) => id).sort()).to.deep.equal([...report.acknowledged].sort());
    await store.close();
  });
});
