import { expect } from 'chai';
import { createWaitingList } from '../../src/protection/waiting.ts';
import { seeded } from '../support/seeded.ts';

describe('what waits for somebody', () => {
  const list = (most = 5, mostOfAddress = 3) => {
    let now = 0;
    const limits = { most, mostOfAddress, ttlSeconds: 60 };
    return { ...createWaitingList(limits, () => now), pass: (seconds: number) => (now += seconds * 1000) };
  };

  it('is so much of an address, the newest', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) expect(waiting.add(id, '1.2.3.4')).to.deep.equal([]);
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal(['a']);
    expect(waiting.add('x', '5.6.7.8')).to.deep.equal([]);
    expect(waiting.add('e', '1.2.3.4')).to.deep.equal(['b']);
  });

  it('is so much of a /64 of IPv6', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) waiting.add(id, `2001:db8:0:1::${id}`);
    expect(waiting.add('d', '2001:db8:0:1:ffff::1')).to.deep.equal(['a']);
    expect(waiting.add('e', '2001:db8:0:2::1')).to.deep.equal([]);
  });

  it('is so much in all, the newest', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c', 'd', 'e']) expect(waiting.add(id, `1.1.1.${id}`)).to.deep.equal([]);
    expect(waiting.add('f', '2.2.2.2')).to.deep.equal(['a']);
    expect(waiting.add('g', undefined)).to.deep.equal(['b']);
  });

  it('stays when it was begun to be answered, for as long as there is what was not', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) waiting.add(id, '1.2.3.4');
    waiting.answered('a');
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal(['b']);
    expect(waiting.add('e', '1.2.3.4')).to.deep.equal(['c']);
    waiting.answered('d');
    waiting.answered('e');
    // The newest alone is unanswered, and must have its chance.
    expect(waiting.add('f', '1.2.3.4')).to.deep.equal(['a']);
  });

  it('leaves its place when it is done, and when its time is over', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c']) waiting.add(id, '1.2.3.4');
    waiting.done('b');
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal([]);
    waiting.pass(61);
    for (const id of ['e', 'f', 'g']) expect(waiting.add(id, '1.2.3.4')).to.deep.equal([]);
  });

  it('is noted once', () => {
    const waiting = list();
    for (const id of ['a', 'b', 'c', 'a', 'a', 'c']) expect(waiting.add(id, '1.2.3.4')).to.deep.equal([]);
    expect(waiting.add('d', '1.2.3.4')).to.deep.equal(['a']);
  });

  it('never is more, in any order of events', () => {
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
