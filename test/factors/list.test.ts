// The list of second factors: what goes by it knows none of them by name.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { FACTORS } from '../../src/factors/factors.ts';

const DIRECTORY = fileURLToPath(new URL('../../src/factors', import.meta.url));

describe('the list of second factors', () => {
  it('has each of them once, whatever it is called by', () => {
    for (const called of ['name', 'kind', 'type', 'prefix', 'strength'] as const) {
      const all = FACTORS.map((factor) => factor[called]);
      expect(new Set(all).size, called).to.equal(all.length);
    }
  });

  it('is all that knows their names: no file outside their folders compares one', async () => {
    const names = FACTORS.flatMap(({ name, kind, type, prefix }) => [name, kind, type, prefix]);
    const quoted = new RegExp(`['"](${[...new Set(names)].join('|')})['"]`);
    const files = (await readdir(DIRECTORY)).filter((file) => file.endsWith('.ts'));
    expect(files).to.include.members(['policy.ts', 'pages.ts', 'routes.ts', 'grants.ts', 'verify.ts']);
    for (const file of files) {
      const lines = (await readFile(join(DIRECTORY, file), 'utf8')).split('\n');
      expect(lines.filter((line) => quoted.test(line))).to.deep.equal([], file);
    }
  });
});
