// The list of second factors. Code outside their folders must not depend on their names.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { FACTORS } from '../../src/features/factors/factors.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
const DIRECTORY = join(SOURCE, 'features/factors');

describe('the list of second factors', () => {
  it('has distinct names, kinds, types, prefixes and strengths', () => {
    for (const called of ['name', 'kind', 'type', 'prefix', 'strength'] as const) {
      const all = FACTORS.map((factor) => factor[called]);
      expect(new Set(all).size, called).to.equal(all.length);
    }
  });

  it("is the only place in src/features/factors, outside the factors' folders, that names a factor", async () => {
    const names = FACTORS.flatMap(({ name, kind, type, prefix }) => [name, kind, type, prefix]);
    const quoted = new RegExp(`['"](${[...new Set(names)].join('|')})['"]`);
    const files = (await readdir(DIRECTORY)).filter((file) => file.endsWith('.ts'));
    expect(files).to.include.members([
      'policy.ts',
      'page-routes.ts',
      'factors-feature.ts',
      'factors-grants.ts',
      'verify.ts',
    ]);
    for (const file of files) {
      const lines = (await readFile(join(DIRECTORY, file), 'utf8')).split('\n');
      expect(lines.filter((line) => quoted.test(line))).to.deep.equal([], file);
    }
  });

  it('is named only by the constants of src/records/users/second-factors.ts in all other folders', async () => {
    // Only names that can mean nothing but a second factor: `otp` is also a method of RFC 8176, and `email` has
    // many meanings.
    const names = FACTORS.flatMap(({ name, type, prefix, provider = type }) => [
      name,
      type,
      prefix,
      provider,
    ]);
    const own = names.filter((name) => name.includes('-'));
    expect(own).to.include.members(['push-notification', 'recovery-code', 'google-authenticator']);
    const quoted = new RegExp(`['"](${[...new Set(own)].join('|')})['"]`);
    const files = (await readdir(SOURCE, { recursive: true })).filter((file) => file.endsWith('.ts'));
    const others = files.filter(
      (file) => !file.startsWith('records/') && !file.startsWith('features/factors/'),
    );
    expect(others.length).to.be.above(500);
    for (const file of others) {
      const lines = (await readFile(join(SOURCE, file), 'utf8')).split('\n');
      const literal = (line: string) => quoted.test(line) && !line.includes('SECOND_FACTORS[');
      expect(lines.filter(literal)).to.deep.equal([], file);
    }
  });
});
