import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import type { DescriptorReport } from './processes/descriptor-writer.ts';
import type { FullDiskReport } from './processes/full-disk-writer.ts';

const program = (name: string) => fileURLToPath(new URL(`./processes/${name}.ts`, import.meta.url));

/** Runs a program under a limit of the shell's; what it reports. */
async function limited<T>(limit: string, name: string, dataDir: string): Promise<T> {
  const command = `ulimit ${limit}; exec "$0" "$1" "$2"`;
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    command,
    process.execPath,
    program(name),
    dataDir,
  ]);
  return JSON.parse(stdout);
}

async function usersIn(dataDir: string): Promise<string[]> {
  const store = await openStore({ dataDir, clock: Date.now });
  const { records } = await store.collection('users').list({ limit: 100_000 });
  await store.close();
  return records.map(({ id }) => id).sort();
}

// Lifting the limit of a process that runs is a matter of Linux.
const onLinux = process.platform === 'linux' ? describe : describe.skip;

onLinux('the embedded store on a disk that refuses to write', () => {
  let dataDir: string;
  let report: FullDiskReport;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-full-'));
    // No file may grow beyond 2048 blocks of 512 or 1024 bytes, whichever the shell counts in.
    report = await limited('-S -f 2048', 'full-disk-writer', dataDir);
  });
  after(() => rm(dataDir, { recursive: true }));

  it('rejects the write, and shows what is on disk and nothing else', () => {
    expect(report.refused).not.to.deep.equal([]);
    expect([...report.visible].sort()).to.deep.equal(
      report.acknowledged.filter((id) => id !== 'later').sort(),
    );
    expect(report.readMeanwhile).to.equal(false);
    expect(report.emailIsFree).to.equal(true);
  });

  it('takes back an update as it takes back an insert', () => {
    expect(report.counter).to.equal(0);
  });

  it('names the file, is not ready, and says so once until it can be written again', () => {
    expect(report.laterWrite).to.match(/gatehouse\.db: /);
    expect(report.ready).to.match(/gatehouse\.db: /);
    const [errors, recoveries] = report.logged;
    expect(errors).to.equal(recoveries);
  });

  it('is ready and can be written again as soon as there is room, without a restart', () => {
    expect(report.afterwards).to.deep.equal({ ready: 'resolved', write: 'resolved' });
  });

  it('opens again with all that was acknowledged and nothing that was refused', async () => {
    expect(await usersIn(dataDir)).to.deep.equal([...report.acknowledged].sort());
  });
});

describe('the embedded store of a process without a file descriptor to spare', () => {
  let dataDir: string;
  let report: DescriptorReport;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-descriptors-'));
    report = await limited('-n 100', 'descriptor-writer', dataDir);
  });
  after(() => rm(dataDir, { recursive: true }));

  it('goes on writing what grows, past every checkpoint', () => {
    expect(report.refused).to.deep.equal([]);
    expect(report.ready).to.equal('resolved');
  });

  it('refuses a change to the configuration, takes it back, and makes it once there is one again', () => {
    expect(report.configuration.meanwhile).to.match(/EMFILE/);
    expect(report.configuration.visible).to.equal(false);
    expect(report.configuration.afterwards).to.equal('resolved');
  });

  it('opens again with all that was acknowledged', async () => {
    expect(await usersIn(dataDir)).to.deep.equal([...report.acknowledged].sort());
  });
});
