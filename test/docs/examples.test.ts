// The commands and the parts of tenant files that documents show are those that there are.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { expect } from 'chai';
import { parse } from 'yaml';
import { ROOT } from '../../build/docs/documents.ts';
import { runCommand } from '../../src/commands/index.ts';
import { tenantFileSchema } from '../../src/records/tenant/tenant.ts';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';

const pages = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file.replaceAll('\\', '/')}`),
];
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');

/** Returns what a command prints, and its exit code. */
async function outputOf(args: readonly string[]) {
  let output = '';
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      output += String(chunk);
      done();
    },
  });
  const host = {
    env: {},
    stdin: Readable.from([]),
    stdout: stream,
    stderr: stream,
    exitCode: 0,
    exit: () => undefined,
  };
  await runCommand(args, host);
  return { output, code: host.exitCode };
}

describe('the documents', () => {
  it('name commands and options that exist', async () => {
    const groups = new Set(['move', 'users', 'keys', 'admin', 'script', 'actions']);
    const helps = new Map<string, string>();
    const faults: string[] = [];
    let count = 0;
    for (const page of pages)
      for (const [, line = ''] of read(page).matchAll(
        /(?:^|`|&& |npx )gatehouse ((?:[a-z-]+)[^`\n#|;&]*)/gm,
      )) {
        const [first = '', second = ''] = line.split(/\s+/);
        const command = groups.has(first) ? `${first} ${second}` : first;
        if (!helps.has(command)) {
          const { output, code } = await outputOf([...command.split(' '), '--help']);
          helps.set(command, code === 0 && output.includes(`Usage: gatehouse ${command}`) ? output : '');
        }
        const help = helps.get(command) ?? '';
        count += 1;
        if (help === '') faults.push(`${page}: there is no command ${command}`);
        for (const [option] of line.matchAll(/(?<=[\s[])--?[a-z][a-z-]*/g))
          if (!new RegExp(`${option}\\b`).test(help)) faults.push(`${page}: ${command} has no ${option}`);
      }
    expect(count).to.be.above(50);
    expect(faults).to.deep.equal([]);
  });

  it('show parts of tenant files that are accepted', () => {
    // Where a key, a secret or a file of the reader's own stands.
    const isPlaceholder = (fault: string) =>
      /(: (is no public key|must be a certificate|must have at least 22 characters)|\.html has no @@config@@)/.test(
        fault,
      );
    const known = new Set(Object.keys(tenantFileSchema.shape));
    const faults: string[] = [];
    let count = 0;
    // A block with words after its language changes a file, and is tested with it (test/site/learn.test.ts).
    for (const page of pages)
      for (const [, block = ''] of read(page).matchAll(/^```yaml\n([\s\S]*?)^```$/gm)) {
        const part = parse(block) as object;
        if (!Object.keys(part).every((key) => known.has(key))) continue;
        count += 1;
        try {
          faults.push(
            ...readTenant(part)
              .warnings.filter((one) => !isPlaceholder(one))
              .map((one) => `${page}: ${one}`),
          );
        } catch (thrown) {
          if (!(thrown instanceof TenantFault)) throw thrown;
          faults.push(...thrown.faults.filter((one) => !isPlaceholder(one)).map((one) => `${page}: ${one}`));
        }
      }
    expect(count).to.be.above(9);
    expect(faults).to.deep.equal([]);
  });
});
