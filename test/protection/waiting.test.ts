import { expect } from 'chai';
import { createWaitingList } from '../../src/protection/waiting.ts';
import { seeded } from '../support/seeded.ts';

describe('the waiting list', () => {
  const list = (max = 5, maxOfAddress = 3) => {
    let now = 0;
    const limits = { max, maxOfAddress, ttlSeconds: 60 };
    return { ...createWaitingList(limits, () => now), pass: (seconds: number) => (now += seconds * 1000) };
  };

  it('keeps a number of entries for an address, and evicts the oldest', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) expect(waiting.add(id, '1.2.3.4')).to.deep.equal([]);
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal(['a']);
    expect(waiting.add('x', '5.6.7.8')).to.deep.equal([]);
    expect(waiting.add('e', '1.2.3.4')).to.deep.equal(['b']);
  });

  it('counts a /64 of IPv6 as one address', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) waiting.add(id, `2001:db8:0:1::${id}`);
    expect(waiting.add('d', '2001:db8:0:1:ffff::1')).to.deep.equal(['a']);
    expect(waiting.add('e', '2001:db8:0:2::1')).to.deep.equal([]);
  });

  it('keeps a number of entries in total, and evicts the oldest', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c', 'd', 'e']) expect(waiting.add(id, `1.1.1.${id}`)).to.deep.equal([]);
    expect(waiting.add('f', '2.2.2.2')).to.deep.equal(['a']);
    expect(waiting.add('g', undefined)).to.deep.equal(['b']);
  });

  it('evicts answered entries after unanswered ones', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) waiting.add(id, '1.2.3.4');
    waiting.answered('a');
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal(['b']);
    expect(waiting.add('e', '1.2.3.4')).to.deep.equal(['c']);
    waiting.answered('d');
    waiting.answered('e');
    // Only the newest is unanswered, and must not be evicted itself.
    expect(waiting.add('f', '1.2.3.4')).to.deep.equal(['a']);
  });

  it('removes entries that are done or expired', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) waiting.add(id, '1.2.3.4');
    waiting.done('b');
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal([]);
    waiting.pass(61);
    for (const id of ['e', 'f', 'g']) expect(waiting.add(id, '1.2.3.4')).to.deep.equal([]);
  });

  it('adds an entry once', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c', 'a', 'a', 'c']) expect(waiting.add(id, '1.2.3.4')).to.deep.equal([]);
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal(['a']);
  });

  it('never exceeds its limits, in any order of events', () => {
    const random = seeded(12);
    const waiting = list(20, 6);
    const there = new Map<string, string>();
    for (let i = 0; i < 20_000; i++) {
      const [id, address] = [`id-${i}`, `10.0.0.${Math.floor(random() * 10)}`];
      for (const gone of waiting.add(id, address)) there.delete(gone);
      there.set(id, address);
      const known = [...there.keys()];
      const any = known[Math.floor(random() * known.length)] ?? id;
      if (random() < 0.3) waiting.answered(any);
      if (random() < 0.2 && there.delete(any)) waiting.done(any);
      expect(there.size).to.be.at.most(20);
      expect([...there.values()].filter((one) => one === address).length).to.be.at.most(6);
    }
  });
});
