// The records of runs of actions, by processes that share a store.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createExecutions } from '../../src/capabilities/actions/executions.ts';
import { createBackground } from '../../src/runtime/background.ts';
import { createLog } from '../../src/runtime/log.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStoreOf } from '../support/store.ts';

describe('executions', () => {
  let directory: string;
  let store: Store;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-executions-'));
    store = await openStoreOf({ dataDir: directory, log: createLog('silent'), clock: Date.now });
  });
  after(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });

  /** Makes the executions of one process. */
  const opened = () => {
    const background = createBackground(createLog('silent'));
    const { newId, start: begin } = createExecutions({
      ...{ store, background, clock: Date.now, random: systemRandom },
      retentionDays: () => 1,
    });
    const run = (name: string, id?: string) => {
      const execution = begin('post-login', id);
      execution.startRun(name)();
      execution.end(false);
      return execution.id;
    };
    return { newId, run, flush: background.flush };
  };
  const kept = async (id: string) => {
    const record = await store.collection('actionExecutions').get(id);
    return record?.results.map(({ action_name }) => action_name);
  };

  it('of one turn of the event loop are all recorded, and those with one id together', async () => {
    const { newId, run, flush } = opened();
    const id = newId();
    const ids = [run('first', id), run('another'), run('second', id), run('third', id)];
    await flush();
    expect(await kept(id)).to.deep.equal(['first', 'second', 'third']);
    expect(await kept(ids[1] ?? '')).to.deep.equal(['another']);
  });

  it('are recorded when another process has continued one whose id was made here', async () => {
    const [here, there] = [opened(), opened()];
    const id = here.newId();
    there.run('there', id);
    await there.flush();
    const another = here.run('another');
    here.run('here', id);
    await here.flush();
    expect(await kept(id)).to.deep.equal(['there', 'here']);
    expect(await kept(another)).to.deep.equal(['another']);
  });
});
