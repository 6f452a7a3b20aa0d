import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { AuthError } from '../../src/http/errors.ts';
import { readBody } from '../../src/http/server/body.ts';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe('request bodies', () => {
  let server: http.Server;
  let url: string;
  /** Called with the status of a refused request. */
  let refused: (status: number) => void = () => undefined;
  before(async () => {
    const app = new Koa();
    app.silent = true;
    app.use(async (ctx, next) => {
      try {
        await next();
      } catch (thrown) {
        if (!(thrown instanceof AuthError)) throw thrown;
        ctx.status = thrown.status;
        refused(thrown.status);
      }
    });
    app.use(readBody(1_000));
    app.use((ctx) => {
      const { body } = ctx.request as unknown as { body?: unknown };
      ctx.body = { body };
    });
    server = http.createServer(app.callback()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(() => server.close());

  const post = async (
    type: string | undefined,
    body: string | Buffer,
    headers: Record<string, string> = {},
  ) => {
    const answer = await fetch(url, {
      method: 'POST',
      body: typeof body === 'string' ? Buffer.from(body) : body,
      headers: { ...(type !== undefined && { 'content-type': type }), ...headers },
    });
    return answer.status === 200 ? ((await answer.json()) as { body: unknown }).body : answer.status;
  };

  const cases: [string, string | undefined, string | Buffer, unknown][] = [
    ['a form', FORM, 'a=1&b=x%20y+z&c=%C3%A9', { a: '1', b: 'x y z', c: 'é' }],
    ['a form with a repeated name', FORM, 'a=1&a=2', { a: ['1', '2'] }],
    ['a form with members', FORM, 'a[b]=1&a[c]=2&d=3', { a: { b: '1', c: '2' }, d: '3' }],
    [
      'a form with names that are not members',
      FORM,
      'a[]=1&b[c][d]=2&[e]=3',
      { 'a[]': '1', 'b[c][d]': '2', '[e]': '3' },
    ],
    ['a form with a name both as text and as object', FORM, 'a=1&a[b]=2', 400],
    ['a form that would change a prototype', FORM, '__proto__[x]=1', 400],
    ['a form whose member would change a prototype', FORM, 'a[__proto__]=1', 400],
    ['a form that is not UTF-8', FORM, 'a=%ff&b=%', { a: '\ufffd', b: '%' }],
    ['a form with a charset', `${FORM}; charset=utf-8`, 'a=1', { a: '1' }],
    ['a form of 500 fields', FORM, Array(500).fill('a').join('&'), { a: Array(500).fill('') }],
    ['a form of more than 500 fields', FORM, Array(501).fill('').join('&'), 400],
    ['JSON', JSON_TYPE, '{"a":{"b":[1,null,true]}}', { a: { b: [1, null, true] } }],
    ['JSON with a byte order mark', JSON_TYPE, '\ufeff{"a":1}', { a: 1 }],
    ['JSON of a media type ending in +json', 'application/vnd.x+json', '[1]', [1]],
    ['JSON that is a string', JSON_TYPE, '"a"', 400],
    ['JSON that is null', JSON_TYPE, 'null', 400],
    ['JSON that breaks off', JSON_TYPE, '{"a":', 400],
    ['JSON that nests 32 deep', JSON_TYPE, nested(32), JSON.parse(nested(32))],
    ['JSON that nests 33 deep', JSON_TYPE, nested(33), 400],
    ['JSON with a lone surrogate', JSON_TYPE, '{"a":["\\ud800"]}', 400],
    ['JSON with a lone surrogate for a name', JSON_TYPE, '{"a":{"\\udc00":1}}', 400],
    ['JSON with both surrogates', JSON_TYPE, '{"a":"\\ud83d\\ude00"}', { a: '😀' }],
    ['JSON that would change a prototype', JSON_TYPE, '{"a":{"__proto__":{}}}', 400],
    ['JSON whose type ends in a semicolon', `${JSON_TYPE};`, '{"a":1}', { a: 1 }],
    ['text', 'text/plain', '{"a":1}', {}],
    ['a body without a media type', undefined, '{"a":1}', {}],
    ['an empty body', JSON_TYPE, '', {}],
    ['a body of the maximum length', FORM, `a=${'x'.repeat(998)}`, { a: 'x'.repeat(998) }],
    ['a body that is longer', FORM, `a=${'x'.repeat(999)}`, 413],
  ];
  for (const [what, type, body, expected] of cases) {
    it(`${typeof expected === 'number' ? 'rejects' : 'reads'}: ${what}`, async () => {
      expect(await post(type, body)).to.deep.equal(expected);
    });
  }

  for (const coding of ['gzip', 'GZIP', 'br', 'x-unknown', 'identity, gzip']) {
    it(`rejects a content coding: ${coding}`, async () => {
      expect(await post(JSON_TYPE, '{}', { 'content-encoding': coding })).to.equal(415);
    });
  }

  const inParts = async (parts: readonly Buffer[]) => {
    const body = new ReadableStream({
      pull(to) {
        const [next, ...rest] = parts;
        parts = rest;
        if (next === undefined) to.close();
        else to.enqueue(next);
      },
    });
    const headers = { 'content-type': JSON_TYPE };
    const answer = await fetch(url, { method: 'POST', body, headers, duplex: 'half' } as RequestInit);
    return answer.status === 200 ? ((await answer.json()) as { body: unknown }).body : answer.status;
  };

  it('reads a body that arrives in parts, one of which ends within a character', async () => {
    const whole = Buffer.from('{"a":"é"}');
    expect(await inParts([whole.subarray(0, 7), whole.subarray(7)])).to.deep.equal({ a: 'é' });
  });

  it('rejects a body whose parts together are too long', async () => {
    expect(await inParts([Buffer.alloc(600, ' '), Buffer.alloc(600, ' '), Buffer.from('{}')])).to.equal(413);
  });

  it('rejects a body whose sender disconnects', async () => {
    const status = new Promise<number>((resolve) => {
      refused = resolve;
    });
    const headers = { 'content-type': JSON_TYPE, 'content-length': '100' };
    const request = http.request(url, { method: 'POST', headers });
    request.on('error', () => undefined);
    request.write('{"a":', () => request.destroy());
    expect(await status).to.equal(400);
  });

  it('ignores a body where none is expected', async () => {
    const answer = await fetch(url, {
      method: 'OPTIONS',
      body: '{"a":1}',
      headers: { 'content-type': JSON_TYPE },
    });
    expect(await answer.json()).to.deep.equal({});
  });
});
