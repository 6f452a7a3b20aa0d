// The list of strategies, and the lock that every password or code strategy respects.
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { strategies } from '../../src/features/connections/strategies.ts';
import type { Proof, ProofDependencies, Provable } from '../../src/features/connections/strategy.ts';
import { AuthError } from '../../src/http/errors.ts';
import { STRATEGIES, strategyRecord } from '../../src/records/connections/connections.ts';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

describe('the strategies', () => {
  it('are the same as those of the tenant file and the store', () => {
    expect(strategies.map(({ name }) => name).sort()).to.deep.equal(Object.keys(STRATEGIES).sort());
    for (const { name, record } of strategies) expect(record).to.equal(STRATEGIES[name]);
  });

  it('take passwords for the password grants exactly if their page is a form for one', () => {
    for (const { name, page } of strategies)
      expect({ name, takes: strategyRecord(name)?.takesPasswords === true }).to.deep.equal({
        name,
        takes: page === 'form',
      });
  });

  it('have the provider’s name as their label, if all their connections have the same provider', () => {
    const labels = Object.fromEntries(
      strategies.map((one) => [one.name, 'label' in one ? one.label : undefined]),
    );
    expect(labels).to.include({ 'google-oauth2': 'Google', apple: 'Apple', github: 'GitHub' });
    expect(labels).to.include({ oidc: undefined, samlp: undefined });
  });

  it('are not compared by name anywhere in the source', async () => {
    const tests = /\b(strategy|provider)\s*[!=]==\s*'|[!=]==\s*'auth0'/;
    const found: string[] = [];
    for (const name of await readdir(SRC, { recursive: true })) {
      if (!name.endsWith('.ts')) continue;
      const lines = (await readFile(`${SRC}${name}`, 'utf8')).split('\n');
      found.push(...lines.filter((line) => tests.test(line)).map((line) => `${name}: ${line.trim()}`));
    }
    expect(found).to.deep.equal([]);
  });

  for (const strategy of strategies.filter(({ page }) => page !== 'redirect')) {
    it(`do not verify credentials of a locked account: ${strategy.name}`, async () => {
      const { check, prove } = strategy as unknown as Provable<string>;
      let lookups = 0;
      const look = async () => {
        lookups++;
        return undefined;
      };
      const deps = {
        users: {
          get: async () => undefined,
          idInConnection: async () => undefined,
          idByAddress: async () => undefined,
          passwordOf: async () => look,
        },
        challenges: { prepare: () => look },
        // Looking the entry up is what says whose attempts are counted.
        directories: { find: async () => undefined, prove: look },
        attempts: {
          admit: async () => {
            throw new AuthError(429, 'too_many_attempts', 'locked');
          },
        },
        events: { record: () => undefined },
      } as unknown as ProofDependencies;
      const proof = {
        clientId: 'web',
        connection: { name: 'some', options: {} },
        identifier: 'ada@example.test',
        credentials: '123456',
        caller: { ip: '192.0.2.1' },
      } as unknown as Proof<string>;
      for (const method of [prove, check]) {
        const refusal = await method(deps, proof).catch((thrown: AuthError) => thrown.status);
        expect(refusal).to.equal(429);
      }
      expect(lookups).to.equal(0);
    });
  }
});
