// `gatehouse move check`: what it says of an export of the hosted service.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../support/command.ts';

describe('gatehouse move check', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-move-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const check = (text: string, env: Record<string, string> = {}) => {
    writeFileSync(join(cwd, 'tenant.yaml'), text);
    return runCommand({ cwd, env, args: ['move', 'check', 'tenant.yaml'] });
  };

  it('names file, line and cause of what cannot be read', async () => {
    const { code, stderr } = await check('clients:\n  - name: A\n    callbacks: [\n');
    expect(code).to.equal(1);
    expect(stderr).to.match(/not valid YAML: .*\(tenant\.yaml:\d\)/);
  });

  it('takes a variable that is not set for no fault', async () => {
    const { code, stderr } = await check('clients:\n  - name: A\n    callbacks: @@CALLBACKS@@\n');
    expect(stderr).to.equal('');
    expect(code).not.to.equal(1);
  });
});
