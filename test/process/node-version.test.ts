import { expect } from 'chai';
import { isOlder } from '../../src/commands/node-version.ts';

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
