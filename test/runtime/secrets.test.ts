// Secrets are compared whole.
import { expect } from 'chai';
import { isSameSecret } from '../../src/runtime/secrets.ts';

describe('the comparison of secrets', () => {
  it('is true for the same text alone: not for its beginning, its end, a longer one or none', () => {
    expect(isSameSecret('a-secret', 'a-secret')).to.equal(true);
    for (const other of ['a-secre', 'secret', 'a-secrets', 'a-secret\0', 'A-secret', 'b-secret', '']) {
      expect(isSameSecret(other, 'a-secret'), other).to.equal(false);
      expect(isSameSecret('a-secret', other), other).to.equal(false);
    }
  });
});
