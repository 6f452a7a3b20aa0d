// A start fails when signing keys are lost or damaged: new keys would end every token, and nobody would know why.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { rotateSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import type { SigningKeyRecord } from '../../src/records/state/engine.ts';
import type { Store } from '../../src/store/contract.ts';
import { createAgent } from '../support/agent.ts';
import { API, header, tenant, token } from '../support/flows.ts';
import { startServer } from '../support/server.ts';
import { openStoreOf } from '../support/store.ts';

const WEB = { client_id: 'web', client_secret: 'web-secret' };
const YEAR = 365 * 86_400_000;

describe('the signing keys', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-keys-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  const kids = async (): Promise<string[]> => {
    const server = await startServer({ tenant, dataDir });
    const { records } = await server.store.collection('signingKeys').list();
    await server.stop();
    return records.map(({ id }) => id);
  };
  const inStore = async (work: (store: Store) => Promise<unknown>) => {
    const store = await openStoreOf({ dataDir, clock: Date.now });
    await work(store);
    await store.close();
  };
  const refusal = () =>
    kids().then(
      () => 'it started',
      (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
    );

  it('are the same after a restart', async () => {
    expect(await kids()).to.deep.equal(await kids());
  });

  it('stop the start when the store has lost them, until a command makes new ones', async () => {
    const before = await kids();
    await inStore(async (store) => {
      for (const id of before) await store.collection('signingKeys').delete(id);
    });
    for (let i = 0; i < 2; i++)
      expect(await refusal())
        .to.contain('signingKeys.json')
        .and.contain('backup');
    await inStore((store) => rotateSigningKeys(store, Date.now));
    const after = await kids();
    expect(after.filter((kid) => before.includes(kid))).to.deep.equal([]);
    expect(after).to.have.length(2);
  });

  it('are always three, and verify the previous token, while the clock jumps a year ahead and back', async () => {
    const server = await startServer({ tenant, dataDir });
    try {
      const agent = createAgent(server);
      let wrong = 0;
      const tokenNow = async () => {
        const { access_token } = (
          await token(agent, { ...WEB, grant_type: 'client_credentials', audience: API })
        ).json();
        return access_token as string;
      };
      const verifies = async (jwt: string) =>
        compactVerify(
          jwt,
          createLocalJWKSet((await agent.get('/.well-known/jwks.json')).json() as JSONWebKeySet),
        );
      let before = await tokenNow();
      for (const leap of [YEAR, -2 * YEAR, YEAR]) {
        server.tick(leap);
        wrong += leap;
        const kid = (await rotateSigningKeys(server.store, () => Date.now() + wrong))[0]?.kid;
        const after = await tokenNow();
        expect(header(after).kid).to.equal(kid).and.not.equal(header(before).kid);
        for (const jwt of [before, after]) await verifies(jwt);
        const { records } = await server.store.collection('signingKeys').list();
        expect(records.map(({ state }) => state).sort()).to.deep.equal(['current', 'next', 'previous']);
        before = after;
      }
    } finally {
      await server.stop();
    }
  });

  it('stop the start with the name of a damaged one', async () => {
    const [kid = ''] = await kids();
    await inStore((store) =>
      store.collection('signingKeys').update(kid, (key) => {
        const { d: _secret, ...jwk } = key.jwk;
        return { ...(structuredClone(key) as SigningKeyRecord), jwk: { ...jwk, p: 'AQAB' } };
      }),
    );
    expect(await refusal()).to.contain(`the key ${kid} is damaged`);
  });
});
