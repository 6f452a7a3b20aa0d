import { Writable } from 'node:stream';
import { expect } from 'chai';
import { createLog } from '../src/runtime/log.ts';

/** Returns the JSON line that is written for a log entry. */
function logged(entry: object): string {
  let text = '';
  const destination = new Writable({
    write: (chunk, _encoding, done) => {
      text += String(chunk);
      done();
    },
  });
  createLog('info', destination).info(entry, 'said');
  return text;
}

describe('the log', () => {
  for (const name of [
    'authorization',
    'cookie',
    'set-cookie',
    'password',
    'secret',
    'client_secret',
    'signing_secret',
    'token',
    'access_token',
    'refresh_token',
    'id_token',
    'code',
  ]) {
    it(`leaves out ${name}, at the top and nested`, () => {
      const text = logged({ [name]: 'LEAK', a: { [name]: 'LEAK', b: { [name]: 'LEAK', kept: 'kept' } } });
      expect(text).not.to.contain('LEAK');
      expect(text).to.contain('kept').and.contain('"msg":"said"');
    });
  }

  it('leaves out secrets in lists and in the fields of a child logger', () => {
    expect(logged({ list: [{ token: 'LEAK', kept: 'kept' }, 'kept'] }))
      .to.contain('"list":[{"token":"[secret]","kept":"kept"},"kept"]')
      .and.not.contain('LEAK');
    const lines: string[] = [];
    const log = createLog('info', { write: (line) => void lines.push(line) });
    log.child({ part: 'mail', headers: { authorization: 'LEAK' } }).info('said');
    expect(lines.join('')).to.contain('"part":"mail"').and.not.contain('LEAK');
  });

  it('does not change the objects that it is given', () => {
    const entry = { a: { password: 'LEAK', b: 1 } };
    expect(logged(entry)).not.to.contain('LEAK');
    expect(entry).to.deep.equal({ a: { password: 'LEAK', b: 1 } });
  });

  it('writes only messages, stacks and causes of an error', () => {
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { session: 'LEAK' });
    expect(logged({ err: error }))
      .to.contain('outer')
      .and.contain('inner')
      .and.not.contain('LEAK');
  });

  it('writes a short line without stacks for a refused request, however long what was sent is', () => {
    const cause = new Error('x'.repeat(100_000), { cause: new Error('y'.repeat(100_000)) });
    const error = Object.assign(new Error('refused', { cause }), { status: 400 });
    const line = logged({ err: error });
    expect(line).to.contain('refused').and.contain('xxx').and.contain('yyy').and.not.contain('stack');
    expect(line.length).to.be.below(1_500);
    expect(logged({ err: cause }).length).to.be.below(10_000);
  });

  it('leaves out warnings of one kind when there are too many, and no others', () => {
    const lines: string[] = [];
    const log = createLog('info', { write: (line) => void lines.push(line) });
    const child = log.child({ requestId: 'r' });
    for (let left = 1_000; left > 0; left--) child.warn({ left }, 'request failed');
    expect(lines).to.have.length.within(1, 100);
    log.warn('another one');
    expect(lines.at(-1)).to.contain('another one');
    for (let left = 1_000; left > 0; left--) log.info('event');
    expect(lines.filter((line) => line.includes('event'))).to.have.length(1_000);
  });
});
