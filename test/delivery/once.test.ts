import { expect } from 'chai';
import { once } from '../../src/capabilities/delivery/once.ts';

describe('once()', () => {
  it('creates a value at the first call, for all concurrent callers', async () => {
    let created = 0;
    const get = once(async () => ++created);
    expect(get.isCreated()).to.equal(false);
    expect(await Promise.all([get(), get()])).to.deep.equal([1, 1]);
    expect(await get()).to.equal(1);
    expect(get.isCreated()).to.equal(true);
  });

  it('creates it again after a failure', async () => {
    let tries = 0;
    const get = once(async () => {
      if (++tries === 1) throw new Error('EMFILE: too many open files');
      return 'made';
    });
    const outcomes = await Promise.allSettled([get(), get()]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(get.isCreated()).to.equal(false);
    expect(await get()).to.equal('made');
  });
});
