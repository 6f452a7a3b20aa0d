// Which of the scripts that wait for a thread is next, when one application has started many that never end.
import { expect } from 'chai';
import { scriptRunner } from '../../src/features/connections/redirect.ts';
import { askedBy } from '../../src/runtime/requester.ts';
import { startSandbox } from './support.ts';

const ENDLESS = 'function (token, context, cb) { for (;;) {} }';
const QUICK = 'function (token, context, cb) { cb(null, 1) }';

describe('the threads of scripts, fair by application', () => {
  let sandbox: ReturnType<typeof startSandbox>;
  beforeEach(() => {
    sandbox = startSandbox({ limits: { cpuMs: 300, graceMs: 200 }, threads: 4 });
  });
  afterEach(() => sandbox.stop());

  /** Starts endless scripts. @returns how many have ended so far. */
  const flood = (count: number, more: { of: string; askedBy?: string }) => {
    let ended = 0;
    for (let started = 0; started < count; started++)
      void sandbox.run(ENDLESS, more).then(() => {
        ended++;
      });
    return () => ended;
  };

  it('thirty endless runs of one application let another one have its turn in the same action', async () => {
    const ended = flood(30, { of: 'action A', askedBy: 'greedy' });
    const { result } = await sandbox.run(QUICK, { of: 'action A', askedBy: 'other' });
    expect(result).to.equal(1);
    expect(ended()).to.be.at.most(3);
  });

  it('as many runs as may wait keep no other application out', async () => {
    const ended = flood(260, { of: 'action A', askedBy: 'greedy' });
    const others = Array.from({ length: 5 }, (_, index) =>
      sandbox.run(QUICK, { of: 'action A', askedBy: `other ${index}` }),
    );
    for (const { result } of await Promise.all(others)) expect(result).to.equal(1);
    // Those that had no place, and those that lost theirs.
    expect(ended()).to.be.below(30);
  });

  it('thirty endless profiles of one application let another one have its turn in the same connection', async () => {
    const run = scriptRunner(sandbox.scripts);
    const connection = { name: 'social', options: {} } as Parameters<typeof run>[0]['connection'];
    const profile = (source: string, clientId: string) =>
      run({ connection, clientId, name: 'fetchUserProfile', source, arguments: ['token', {}], secrets: [] });
    let ended = 0;
    for (let started = 0; started < 30; started++) {
      const count = () => {
        ended++;
      };
      void profile(ENDLESS, 'greedy').then(count, count);
    }
    expect(await profile(QUICK, 'other')).to.equal(1);
    expect(ended).to.be.at.most(3);
  });

  it('thirty endless runs without an application let those of another network have their turn', async () => {
    const from = <T>(network: string, work: () => T): T =>
      askedBy({ id: 'request', origin: () => ({ network, address: `${network}1` }) }, work);
    const ended = from('203.0.113.', () => flood(30, { of: 'connection A' }));
    const { result } = await from('198.51.100.', () => sandbox.run(QUICK, { of: 'connection A' }));
    expect(result).to.equal(1);
    expect(ended()).to.be.at.most(3);
  });

  it('the runs of other actions come before those of the one that has the most', async () => {
    const ended = flood(30, { of: 'action A', askedBy: 'greedy' });
    const { result } = await sandbox.run(QUICK, { of: 'action B', askedBy: 'greedy' });
    expect(result).to.equal(1);
    expect(ended()).to.be.at.most(3);
  });
});
