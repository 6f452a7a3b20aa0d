import { expect } from 'chai';
import { originOf } from '../../src/http/addresses.ts';
import { atMost } from '../../src/http/server/router.ts';
import { askedBy } from '../../src/runtime/requester.ts';

describe('work at once', () => {
  const begun = () => {
    const work = atMost(100);
    const ends: (() => void)[] = [];
    let refused = 0;
    const begin = (ip: string) =>
      askedBy({ id: 'request', origin: () => originOf(ip) }, () =>
        work(() => new Promise<void>((resolve) => ends.push(resolve))),
      ).catch((error: unknown) => {
        expect(error).to.include({ status: 503, error: 'temporarily_unavailable' });
        refused += 1;
      });
    return { begin, ends, refused: () => refused };
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  it('leaves room for others, however many addresses a network has', async () => {
    const { begin, ends, refused } = begun();
    for (let i = 0; i < 200; i++) void begin(`2001:db8:1:${i.toString(16)}::1`);
    await settled();
    expect(ends).to.have.length(80);
    for (let i = 0; i < 10; i++) void begin(`198.51.${i}.1`);
    await settled();
    expect(ends).to.have.length(90);
    expect(refused()).to.equal(120);
  });

  it('gives the places back, and lets one address alone have most of them', async () => {
    const { begin, ends, refused } = begun();
    const all = Array.from({ length: 76 }, () => begin('198.51.100.1'));
    await settled();
    expect(refused()).to.equal(0);
    for (const end of ends.splice(0)) end();
    await Promise.all(all);
    void begin('198.51.100.2');
    await settled();
    expect(ends).to.have.length(1);
  });
});
