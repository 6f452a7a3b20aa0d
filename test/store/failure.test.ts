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

/** Runs a program with a limit set by the shell, and returns its report. */
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

// Only Linux can lift the limit of a running process (prlimit).
const onLinux = process.platform === 'linux' ? describe : describe.skip;

onLinux('the embedded store on a disk that refuses to write', () => {
  let dataDir: string;
  let report: FullDiskReport;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-full-'));
    // Limits files to 2048 blocks of 512 or 1024 bytes, depending on the shell.
    report = await limited('-S -f 2048', 'full-disk-writer', dataDir);
  });
  after(() => rm(dataDir, { recursive: true }));

  it('rejects the write, and shows exactly what is on disk', () => {
    expect(report.refused).not.to.deep.equal([]);
    expect([...report.visible].sort()).to.deep.equal(
      report.acknowledged.filter((id) => id !== 'later').sort(),
    );
    expect(report.readMeanwhile).to.equal(false);
    expect(report.emailIsFree).to.equal(true);
  });

  it('undoes a refused update as well as a refused insert', () => {
    expect(report.counter).to.equal(0);
  });

  it('names the file in the error, is not ready, and logs one recovery for each failure', () => {
    expect(report.laterWrite).to.match(/gatehouse\.db: /);
    expect(report.ready).to.match(/gatehouse\.db: /);
    const [errors, recoveries] = report.logged;
    expect(errors).to.equal(recoveries);
  });

  it('is ready and writes again as soon as there is space, without a restart', () => {
    expect(report.afterwards).to.deep.equal({ ready: 'resolved', write: 'resolved' });
  });

  it('opens again with everything that was acknowledged and nothing that was refused', async () => {
    expect(await usersIn(dataDir)).to.deep.equal([...report.acknowledged].sort());
  });
});

describe('the embedded store in a process without a free file descriptor', () => {
  let dataDir: string;
  let report: DescriptorReport;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-descriptors-'));
    report = await limited('-n 100', 'descriptor-writer', dataDir);
  });
  after(() => rm(dataDir, { recursive: true }));

  it('goes on writing to the database, past every checkpoint', () => {
    expect(report.refused).to.deep.equal([]);
    expect(report.ready).to.equal('resolved');
  });

  it('refuses and undoes a change of the configuration, and accepts it once a descriptor is free', () => {
    expect(report.configuration.meanwhile).to.match(/EMFILE/);
    expect(report.configuration.visible).to.equal(false);
    expect(report.configuration.afterwards).to.equal('resolved');
  });

  it('opens again with everything that was acknowledged', async () => {
    expect(await usersIn(dataDir)).to.deep.equal([...report.acknowledged].sort());
  });
});
