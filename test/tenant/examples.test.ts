// Every file of config/examples is a tenant that a server starts with.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { loadTenantFile } from '../../src/tenant/load.ts';

const EXAMPLES = new URL('../../config/examples/', import.meta.url);

describe('config/examples', () => {
  for (const name of readdirSync(EXAMPLES).filter((one) => one.endsWith('.yaml'))) {
    it(`${name} is valid`, async () => {
      const path = fileURLToPath(new URL(name, EXAMPLES));
      const loaded = await loadTenantFile(path, variablesOf(readFileSync(path, 'utf8')));
      expect(loaded).to.be.an('object');
    });
  }
});

/** A value for each variable of a file: an address, or a secret. */
function variablesOf(text: string): Record<string, string> {
  const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
  const value = (name: string) => {
    if (/SECRET|PASSWORD/.test(name)) return 'a-secret-of-at-least-32-characters!';
    return /LDAP|DIRECTORY/.test(name) ? 'ldaps://localhost:636' : 'https://localhost:3100';
  };
  return Object.fromEntries(names.map((name) => [name, value(name)]));
}
