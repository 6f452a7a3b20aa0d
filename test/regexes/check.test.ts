// The check of regular expressions refuses those that may take long.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const CHECK = fileURLToPath(new URL('./check.ts', import.meta.url));

/** Checks a source file. @returns what was written to standard error, empty if nothing is wrong. */
function faultsOf(source: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'regexes-'));
  try {
    mkdirSync(join(directory, 'src'));
    writeFileSync(join(directory, 'src/a.ts'), source);
    const flags = ['--disable-warning=ExperimentalWarning', CHECK, directory];
    const { status, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8' });
    expect(status).to.equal(stderr === '' ? 0 : 1);
    return stderr;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

describe('the check of regular expressions', () => {
  it('refuses one that takes exponential time, and says where it is', () => {
    expect(
      faultsOf('const a: number = 1;\nexport const isXml = (t: string) => /^(\\ufeff|\\s)*</.test(t);\n'),
    )
      .to.contain('src/a.ts:2')
      .and.contain('exponential');
  }).timeout(90_000);

  it('refuses one that takes time in the square of the text', () => {
    expect(faultsOf("export const b = (t: string) => t.replace(/\\/+$/, '');\n")).to.contain(
      '2nd degree polynomial',
    );
  }).timeout(90_000);

  it('refuses one that is computed', () => {
    expect(faultsOf('export const c = (t: string) => new RegExp(t);\n')).to.contain('it is computed');
  }).timeout(90_000);

  it('accepts one that takes time in proportion to the text', () => {
    expect(faultsOf('export const d = (t: string) => /^[a-z]{1,9}$/.test(t);\n')).to.equal('');
  }).timeout(90_000);
});
