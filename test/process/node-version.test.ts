import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { isOlder } from '../../src/commands/node-version.js';
import { CLI, environment, MAIN } from '../support/process.ts';

describe('isOlder()', () => {
  for (const version of [
    '20.20.2',
    '22.17.9',
    '22.0.0',
    '8.1.0',
    '22.18.0-nightly'.replace('22.18', '22.9'),
  ]) {
    it(`is true for ${version}, where 22.18 is needed`, () =>
      expect(isOlder(version, '22.18')).to.equal(true));
  }
  for (const version of ['22.18.0', '22.18.1', '22.100.0', '24.0.0', '100.0.0']) {
    it(`is false for ${version}, where 22.18 is needed`, () =>
      expect(isOlder(version, '22.18')).to.equal(false));
  }
});

describe('with a Node.js that is too old', () => {
  // Stands for the old one: only the number is seen before anything is loaded that an old one does not know.
  const preload = `data:text/javascript,${encodeURIComponent(
    "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });",
  )}`;
  for (const [name, program] of Object.entries({ 'the server': MAIN, 'the command': CLI }))
    it(`${name} says which one it needs`, () => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', preload, program], {
        env: environment(),
        encoding: 'utf8',
      });
      expect(stderr).to.equal('gatehouse needs Node.js 22.18 or newer, and this is 20.20.2\n');
      expect(stdout).to.equal('');
      expect(status).to.equal(1);
    });
});
