// A server starts with every file of config/examples.
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { clientCertificate } from '../support/client-certificate.ts';

const EXAMPLES = new URL('../../config/examples/', import.meta.url);

describe('config/examples', () => {
  let key: string;
  let certificate: string;
  before(async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    key = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    certificate = (await clientCertificate()).cert;
  });

  /** Returns a value for each variable of a file: a URL, a secret, a key. */
  const variablesOf = (text: string): Record<string, string> => {
    const value = (name: string) => {
      if (name.startsWith('KEY_')) return key;
      if (name.startsWith('CERTIFICATE_')) return certificate;
      if (/SECRET|PASSWORD/.test(name)) return 'a-secret-of-at-least-32-characters!';
      return /LDAP|DIRECTORY/.test(name) ? 'ldaps://localhost:636' : 'https://localhost:3100';
    };
    const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
    return Object.fromEntries(names.map((name) => [name, value(name)]));
  };

  for (const name of readdirSync(EXAMPLES).filter((one) => one.endsWith('.yaml'))) {
    it(`${name} is valid`, async () => {
      const path = fileURLToPath(new URL(name, EXAMPLES));
      const loaded = await loadTenantFile(path, variablesOf(readFileSync(path, 'utf8')));
      expect(loaded).to.be.an('object');
    });
  }
});
