// Used DPoP proofs in the memory of one process (RFC 9449 §11.1), with a crash, a full memory, and a clock that is
// set back.
import { cpSync, lstatSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { usedProofs } from '../../src/engine/binding/used-proofs.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { createAgent } from '../support/agent.ts';
import { createProver } from '../support/dpop.ts';
import { API, tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const MACHINE = {
  grant_type: 'client_credentials',
  client_id: 'm2m',
  client_secret: 'm2m-secret',
  audience: API,
};

describe('used DPoP proofs, with one process', () => {
  let root: string;
  let store: Store;
  let time = Date.now();
  const at = () => Math.floor(time / 1000);
  const clock = () => time;
  before(async () => {
    root = mkdtempSync(join(tmpdir(), 'gatehouse-proofs-'));
    store = await openStore({ dataDir: join(root, 'alone'), clock });
  });
  after(async () => {
    await store.close();
    rmSync(root, { recursive: true, force: true });
  });
  const open = (most?: number) =>
    usedProofs({ store, clock, wallClock: clock, ...(most !== undefined && { most }) });

  it('are accepted once, also beyond the number that memory can hold', async () => {
    const used = await open(2);
    const ids = ['a', 'b', 'c', 'd'];
    for (const jti of ids) expect(await used.recordUse('full', jti), jti).to.equal(true);
    for (const jti of ids) expect(await used.recordUse('full', jti), jti).to.equal(false);
    const racing = await Promise.all(Array.from({ length: 50 }, () => used.recordUse('full', 'e')));
    expect(racing.filter((first) => first)).to.have.length(1);
    // Memory has room again: proofs that were stored meanwhile still count as used.
    time += 9 * 60_000;
    expect(await used.recordUse('full', 'f')).to.equal(true);
    for (const jti of ['c', 'd', 'e', 'f']) expect(await used.recordUse('full', jti), jti).to.equal(false);
  });

  it('of one application do not count as used for another', async () => {
    const used = await open();
    expect(await used.recordUse('one', 'same')).to.equal(true);
    expect(await used.recordUse('other', 'same')).to.equal(true);
  });

  it('need a nonce after a crash, if they may have been used before it', async () => {
    const crashed = await open();
    expect(await crashed.recordUse('crash', 'a')).to.equal(true);
    const next = await open();
    // A proof may be dated a minute ahead of its use, and its use may be ten seconds before the recorded time.
    expect(next.needsNonce(at())).to.equal(true);
    time += 71_000;
    expect(next.needsNonce(at())).to.equal(false);
    expect(next.needsNonce(at() - 2)).to.equal(true);
    // An orderly stop after the crash does not restore them; after five minutes such a proof is too old anyway.
    const made = at() - 2;
    await next.storeUsedProofs();
    expect((await open()).needsNonce(made), 'after a stop').to.equal(true);
    time += 5 * 60_000;
    await (await open()).storeUsedProofs();
    expect((await open()).needsNonce(at())).to.equal(false);
  });

  it('are known to the next process after an orderly stop', async () => {
    const stopped = await open();
    expect(await stopped.recordUse('stop', 'a')).to.equal(true);
    await stopped.storeUsedProofs();
    expect(await stopped.recordUse('stop', 'b'), 'a late request').to.equal(true);
    const next = await open();
    expect(next.needsNonce(at())).to.equal(false);
    for (const jti of ['a', 'b']) expect(await next.recordUse('stop', jti), jti).to.equal(false);
    expect(await next.recordUse('stop', 'c')).to.equal(true);
  });

  it('need a nonce when they may be forgotten because the clock was set back', async () => {
    let behind = 0;
    const used = await usedProofs({ store, clock, wallClock: () => time - behind });
    const iat = at();
    expect(await used.recordUse('set back', 'a')).to.equal(true);
    time += 10 * 60_000;
    behind = 10 * 60_000;
    expect(used.needsNonce(iat)).to.equal(true);
    behind = 0;
    expect(used.needsNonce(at())).to.equal(false);
  });

  it('are refused while their use cannot be recorded', async () => {
    const broken: Store = {
      ...store,
      exclusive: true,
      collection: ((name: 'artifacts') => ({
        ...store.collection(name),
        put: () => Promise.reject(new Error('the disk is full')),
      })) as never,
    };
    time += 60_000;
    const used = await usedProofs({ store: broken, clock, wallClock: clock });
    const failed = await used.recordUse('broken', 'a').catch((thrown: Error) => thrown.message);
    expect(failed).to.equal('the disk is full');
  });
});

it('a DPoP proof from before a crash is refused after it, and one with a new nonce is accepted at once', async () => {
  const root = mkdtempSync(join(tmpdir(), 'gatehouse-crash-'));
  const prover = await createProver();
  let url = '';
  const servers: TestServer[] = [];
  const start = async (env: Record<string, string>, name: string) => {
    const server = await startServer({
      tenant,
      dataDir: join(root, name),
      env: { DATABASE_URL: '', ...env },
    });
    servers.push(server);
    return server;
  };
  const ask = async (server: TestServer, proof: string) =>
    createAgent({ url: server.localUrl, ca: server.ca }).request('/oauth/token', {
      form: MACHINE,
      headers: { dpop: proof },
    });
  const proofFor = (nonce?: string) =>
    prover.proof('POST', `${url}/oauth/token`, nonce === undefined ? {} : { nonce });
  try {
    const first = await start({}, 'running');
    url = first.url;
    const proof = await proofFor();
    const taken = await ask(first, proof);
    expect(taken.status, taken.text).to.equal(200);
    const nonceBefore = String(taken.headers['dpop-nonce']);
    const withNonce = await proofFor(nonceBefore);
    expect((await ask(first, withNonce)).status).to.equal(200);
    // The disk now has what a crash would leave.
    cpSync(join(root, 'running'), join(root, 'crashed'), {
      recursive: true,
      filter: (path) => !path.endsWith('/lock') && !lstatSync(path).isSocket(),
    });
    const second = await start({ BASE_URL: url }, 'crashed');
    for (const used of [proof, withNonce, await proofFor(), await proofFor(nonceBefore)]) {
      const answer = await ask(second, used);
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.json().error, answer.text).to.equal('use_dpop_nonce');
    }
    const nonce = String((await ask(second, await proofFor())).headers['dpop-nonce']);
    expect((await ask(second, await proofFor(nonce))).json().token_type).to.equal('DPoP');
  } finally {
    for (const server of servers) await server.stop();
    rmSync(root, { recursive: true, force: true });
  }
});
