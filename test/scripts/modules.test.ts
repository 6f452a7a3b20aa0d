// The globals and modules of scripts.
import { generateKeyPairSync } from 'node:crypto';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { exportJWK, importPKCS8, jwtVerify, SignJWT } from 'jose';
import { type Provider, startProvider, startSandbox } from './support.ts';

/** PBKDF2 of `password` and `salt` with HMAC-SHA-1, 2 iterations, 20 bytes (RFC 6070 §2). */
const RFC6070 = 'ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957';

describe('a script can use', () => {
  let provider: Provider;
  let sandbox: ReturnType<typeof startSandbox>;
  const pairs = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  };
  const privatePem = (alg: keyof typeof pairs) =>
    pairs[alg].privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  const publicPem = (alg: keyof typeof pairs) =>
    pairs[alg].publicKey.export({ type: 'spki', format: 'pem' }) as string;
  before(async () => {
    const jwk = { ...(await exportJWK(pairs.RS256.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' };
    provider = await startProvider({
      '/jwks': (_request, response) => response.end(JSON.stringify({ keys: [jwk] })),
    });
    sandbox = startSandbox();
  });
  after(async () => {
    await sandbox.stop();
    await provider.stop();
  });
  const result = (body: string, globals: object = {}) =>
    sandbox.result(body, { globals: { URL_: provider.url, ...globals } });
  /** Returns the value of each expression. */
  const gives =
    (cases: [string, unknown][], prelude = '') =>
    async () => {
      const body = `${prelude}; return [${cases.map(([expression]) => `(${expression})`).join(',\n')}]`;
      const found = (await result(body)) as unknown[];
      for (const [at, [expression, expected]] of cases.entries())
        expect(found[at], expression).to.deep.equal(expected);
    };

  it(
    'bcrypt and pbkdf2, in all of their forms',
    gives(
      [
        ['bcrypt.compareSync("secret", hash)', true],
        ['bcrypt.compareSync("other", hash)', false],
        ['bcrypt.compareSync("secret", "no hash")', false],
        ['bcrypt.compareSync("secret", bcrypt.hashSync("secret", 4))', true],
        ['bcrypt.hashSync("secret", hash) === hash', true],
        ['bcrypt.getRounds(bcrypt.genSaltSync(5))', 5],
        ['await bcrypt.compare("secret", await bcrypt.hash("secret", 4))', true],
        [
          'await new Promise((done) => bcrypt.compare("secret", hash, (error, same) => done([error, same])))',
          [null, true],
        ],
        [
          'await new Promise((done) => bcrypt.hash("secret", 40, (error) => done(error.message)))',
          'the rounds are from 4 to 15',
        ],
        // RFC 6070
        ['pbkdf2.pbkdf2Sync("password", "salt", 2, 20, "sha1").toString("hex")', RFC6070],
        [
          'await new Promise((done) => require("crypto").pbkdf2("password", "salt", 2, 20, "sha1", (e, key) => done(key.toString("hex"))))',
          RFC6070,
        ],
        [
          '(() => { try { pbkdf2.pbkdf2Sync("p", "s", 3e6, 20, "sha1") } catch (error) { return error.message } })()',
          'it takes too many iterations',
        ],
        [
          '(() => { try { pbkdf2.pbkdf2Sync("p", "s", 2e9, 1e9, "sha512") } catch (error) { return error.message } })()',
          'keylen is from 1 to 1024',
        ],
      ],
      `const bcrypt = require('bcrypt@5.0.0'), pbkdf2 = require('pbkdf2'), hash = '${bcrypt.hashSync('secret', 4)}'`,
    ),
  );

  it(
    'Buffer',
    gives([
      ['Buffer.from("héllo ✓").toString("base64")', 'aMOpbGxvIOKckw=='],
      ['Buffer.from("aMOpbGxvIOKckw==", "base64").toString()', 'héllo ✓'],
      ['Buffer.from("_-8", "base64url").toString("hex")', 'ffef'],
      ['Buffer.from("00ff", "hex").toString("latin1")', '\0ÿ'],
      ['Buffer.from([1, 2, 300]).toJSON()', { type: 'Buffer', data: [1, 2, 44] }],
      ['Buffer.concat([Buffer.from("a"), Buffer.from("b")]).toString()', 'ab'],
      ['Buffer.byteLength("é")', 2],
      ['Buffer.isBuffer(Buffer.alloc(2)) && !Buffer.isBuffer(new Uint8Array(2))', true],
      ['new Buffer("x").equals(Buffer("x"))', true],
      ['Buffer.from("abcabc").indexOf("ca")', 2],
      ['Buffer.from("abc").slice(1).toString()', 'bc'],
      ['Buffer.alloc(3, "ab").toString()', 'aba'],
      ['Buffer.from([1, 2, 3, 4]).readUInt32BE(0)', 0x01020304],
      ['require("buffer").Buffer === Buffer', true],
      ['Buffer.from("a") instanceof Uint8Array && Buffer.from("a") instanceof Buffer', true],
    ]),
  );

  it(
    'text and its encodings',
    gives([
      ['atob("aGk=")', 'hi'],
      ['btoa("hi")', 'aGk='],
      ['[...new TextEncoder().encode("é")]', [195, 169]],
      ['[...new TextEncoder().encode("\\0;\\ufffd\\ud800")]', [0, 59, 239, 191, 189, 239, 191, 189]],
      ['new TextDecoder().decode(new Uint8Array([195, 169]))', 'é'],
      ['escape("é") + decodeURIComponent("%C3%A9")', '%E9é'],
      ['JSON.stringify(structuredClone({ a: [new Date(0)] }))', '{"a":["1970-01-01T00:00:00.000Z"]}'],
      [
        '[typeof queueMicrotask, typeof Intl, typeof process, typeof SharedArrayBuffer]',
        ['function', 'undefined', 'undefined', 'undefined'],
      ],
    ]),
  );

  it(
    'URL, URLSearchParams, url and querystring',
    gives(
      [
        [
          'String(new URL("../b?c=1#d", "https://u:p@h.example:444/a/x"))',
          'https://u:p@h.example:444/b?c=1#d',
        ],
        ['u.hostname + u.port + u.origin', 'h.example444https://h.example:444'],
        ['(u.searchParams.append("e", "ü &"), u.href)', 'https://u:p@h.example:444/b?c=1&e=%C3%BC+%26#d'],
        ['(u.pathname = "/z z", u.search = "?q=2", u.searchParams.get("q") + u.pathname)', '2/z%20z'],
        [
          '(() => { try { new URL("no") } catch (e) { return e instanceof TypeError && e.code } })()',
          'ERR_INVALID_URL',
        ],
        [
          '[...new URLSearchParams("a=1&b=%20x&a=3")]',
          [
            ['a', '1'],
            ['b', ' x'],
            ['a', '3'],
          ],
        ],
        ['new URLSearchParams({ a: "x y", b: "é" }).toString()', 'a=x+y&b=%C3%A9'],
        ['require("querystring").stringify({ a: [1, 2], b: "x y" })', 'a=1&a=2&b=x%20y'],
        ['({ ...require("querystring").parse("a=1&a=2&b=x+y") })', { a: ['1', '2'], b: 'x y' }],
        ['require("url").parse("https://h.example/p?q=1#h").pathname', '/p'],
        [
          'require("url").format({ protocol: "https", host: "h.example", pathname: "/p", query: { q: 1 } })',
          'https://h.example/p?q=1',
        ],
        ['require("node:url").resolve("https://h.example/a/b", "c")', 'https://h.example/a/c'],
      ],
      'const u = new URL("../b?c=1#d", "https://u:p@h.example:444/a/x")',
    ),
  );

  it(
    'util, uuid and timers',
    gives(
      [
        ['util.format("%s %d %j %%", "a", "2", { b: 1 }, "rest")', 'a 2 {"b":1} % rest'],
        ['util.inspect({ a: [1, "x", null], f() {} })', "{ a: [ 1, 'x', null ], f: [Function: f] }"],
        ['await util.promisify((a, cb) => setTimeout(cb, 1, null, a + 1))(1)', 2],
        ['(await util.promisify((cb) => cb(new Error("no")))().catch((e) => e)).message', 'no'],
        ['uuid.validate(uuid.v4()) && uuid.v4() !== uuid.v4() && uuid.validate(crypto.randomUUID())', true],
        ['uuid.v5("hello.example.com", uuid.v5.DNS)', 'fdda765f-fc57-5604-a269-52a7df8164ec'],
        [
          'await new Promise((r) => { const at = []; setTimeout(() => r(at), 400); setTimeout(() => at.push(2), 200); setImmediate(() => at.push(1)); clearTimeout(setTimeout(() => at.push(9), 5)) })',
          [1, 2],
        ],
        [
          'await new Promise((r) => { let n = 0; const t = setInterval(() => { if (++n === 3) { clearInterval(t); r(n) } }, 1) })',
          3,
        ],
      ],
      'const util = require("util"), uuid = require("uuid")',
    ),
  );

  it(
    'crypto',
    gives([
      [
        'crypto.createHash("sha256").update("a").update("b").digest("hex")',
        'fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603',
      ],
      [
        'Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("ab"))).toString("hex")',
        'fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603',
      ],
      ['crypto.getRandomValues(new Uint8Array(8)).length', 8],
      ['crypto.randomBytes(16).toString("hex").length', 32],
      ['require("crypto") === crypto && require("crypto").webcrypto.subtle === crypto.subtle', true],
      ['crypto.timingSafeEqual(Buffer.from("a"), Buffer.from("a"))', true],
      [
        '(() => { try { crypto.createHash("shake256").digest() } catch (e) { return e.message } })()',
        'Digest method not supported: shake256',
      ],
    ]),
  );

  it('HMACs as Node computes them, and signatures that Node verifies', async () => {
    const { createHmac, verify } = await import('node:crypto');
    const found = await result(
      `return [crypto.createHmac('sha1', 'key').update('x').digest('hex'),
        crypto.createSign('RSA-SHA256').update('x').sign(pem, 'base64'),
        crypto.createVerify('RSA-SHA256').update('x').verify(pub, crypto.createSign('RSA-SHA256').update('x').sign(pem))]`,
      { pem: privatePem('RS256'), pub: publicPem('RS256') },
    );
    expect(found[0]).to.equal(createHmac('sha1', 'key').update('x').digest('hex'));
    expect(
      verify('sha256', Buffer.from('x'), pairs.RS256.publicKey, Buffer.from(found[1], 'base64')),
    ).to.equal(true);
    expect(found[2]).to.equal(true);
  });

  it('jsonwebtoken, to issue and verify tokens', async () => {
    const key = await importPKCS8(privatePem('RS256'), 'RS256');
    const token = await new SignJWT({ sub: 'u' })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
      .setIssuer('https://i/')
      .setExpirationTime('1h')
      .sign(key);
    const found = await result(
      `const jwt = require('jsonwebtoken');
      const thrown = (run) => { try { return run() } catch (e) { return e.name + ': ' + e.message } };
      const signed = jwt.sign({ a: 1 }, pem, { algorithm: 'RS256', expiresIn: '2h', issuer: 'https://s/', keyid: 'k1' });
      const secret = jwt.sign({ a: 1 }, 'secret', { expiresIn: -1 });
      return {
        decoded: jwt.decode(given).sub, complete: jwt.decode(given, { complete: true }).header.kid, none: jwt.decode('x'),
        verified: jwt.verify(given, pub, { issuer: 'https://i/' }).sub,
        byCallback: await new Promise((r) => jwt.verify(given, (header, cb) => cb(null, header.kid === 'k1' && pub), (e, p) => r(p?.sub ?? e.message))),
        issuer: thrown(() => jwt.verify(given, pub, { issuer: 'https://other/' })),
        algorithm: thrown(() => jwt.verify(given, pub, { algorithms: ['HS256'] })),
        confused: thrown(() => jwt.verify(jwt.decode(given) && forged, pub)),
        expired: thrown(() => jwt.verify(secret, 'secret')), wrong: thrown(() => jwt.verify(secret, 'other')),
        unsigned: thrown(() => jwt.verify('eyJhbGciOiJub25lIn0.e30.', 'secret')), malformed: thrown(() => jwt.verify('x', 'secret')),
        signed,
      };`,
      {
        given: token,
        pem: privatePem('RS256'),
        pub: publicPem('RS256'),
        // The public key used as the secret of an HMAC.
        forged: await new SignJWT({ sub: 'admin' })
          .setProtectedHeader({ alg: 'HS256' })
          .sign(Buffer.from(publicPem('RS256'))),
      },
    );
    const { signed, ...rest } = found;
    expect(rest).to.deep.equal({
      decoded: 'u',
      complete: 'k1',
      none: null,
      verified: 'u',
      byCallback: 'u',
      issuer: 'JsonWebTokenError: jwt issuer invalid. expected: https://other/',
      algorithm: 'JsonWebTokenError: invalid algorithm',
      confused: 'JsonWebTokenError: invalid algorithm',
      expired: 'TokenExpiredError: jwt expired',
      wrong: 'JsonWebTokenError: invalid signature',
      unsigned: 'JsonWebTokenError: jwt signature is required',
      malformed: 'JsonWebTokenError: jwt malformed',
    });
    const { payload } = await jwtVerify(signed, pairs.RS256.publicKey, { issuer: 'https://s/' });
    expect(payload.exp! - payload.iat!).to.equal(7200);
  });

  it('jose, with a key set of the provider', async () => {
    const token = await new SignJWT({ sub: 'u' })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
      .setAudience('a')
      .setExpirationTime('1h')
      .sign(pairs.RS256.privateKey);
    const found = await result(
      `const jose = require('jose');
      const failed = (work) => work.then(() => 'passed', (e) => e.code);
      const keys = jose.createRemoteJWKSet(new URL(URL_ + '/jwks'));
      const { payload, protectedHeader } = await jose.jwtVerify(given, keys, { audience: 'a' });
      const made = await new jose.SignJWT({ b: 2 }).setProtectedHeader({ alg: 'ES256' }).setIssuedAt().setExpirationTime('5m').setAudience('aud')
        .sign(await jose.importPKCS8(ec, 'ES256'));
      return {
        sub: payload.sub, alg: protectedHeader.alg, decoded: jose.decodeJwt(given).sub, made,
        own: (await jose.jwtVerify(made, await jose.importSPKI(ecPub, 'ES256'))).payload.b,
        audience: await failed(jose.jwtVerify(given, keys, { audience: 'b' })),
        tampered: await failed(jose.jwtVerify(given.slice(0, -3) + 'AAA', keys)),
        confused: await jose.jwtVerify(forged, await jose.importSPKI(rsPub)).catch((e) => e.name),
        expired: await failed(jose.jwtVerify(given, keys, { currentDate: new Date(Date.now() + 7200000) })),
        unknown: await failed(jose.jwtVerify(made, keys)),
      };`,
      {
        given: token,
        ec: privatePem('ES256'),
        ecPub: publicPem('ES256'),
        rsPub: publicPem('RS256'),
        forged: await new SignJWT({})
          .setProtectedHeader({ alg: 'HS256' })
          .sign(Buffer.from(publicPem('RS256'))),
      },
    );
    const { made, ...rest } = found;
    expect(rest).to.deep.equal({
      sub: 'u',
      alg: 'RS256',
      decoded: 'u',
      own: 2,
      audience: 'ERR_JWT_CLAIM_VALIDATION_FAILED',
      tampered: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
      confused: 'TypeError',
      expired: 'ERR_JWT_EXPIRED',
      unknown: 'ERR_JWKS_NO_MATCHING_KEY',
    });
    await jwtVerify(made, pairs.ES256.publicKey, { audience: 'aud' });
  });

  it(
    'lodash',
    gives(
      [
        ['_.get({ a: [{ b: 1 }] }, "a[0].b") + _.get({}, "x.y", 5)', 6],
        ['_.set({}, "a.b[0]", 1)', { a: { b: [1] } }],
        ['_.pick({ a: 1, b: 2, c: { d: 3 } }, ["a", "c.d"])', { a: 1, c: { d: 3 } }],
        ['_.omit({ a: 1, b: 2 }, "a")', { b: 2 }],
        ['_.merge({ a: { b: 1 } }, { a: { c: [1] } })', { a: { b: 1, c: [1] } }],
        ['_.map([{ n: 1 }, { n: 2 }], "n")', [1, 2]],
        ['_.find([{ n: 1, p: 0 }, { n: 2, p: 1 }], { n: 2 }).p', 1],
        ['_.groupBy(["ab", "c", "de"], "length")', { 1: ['c'], 2: ['ab', 'de'] }],
        ['_.sortBy([{ n: 2 }, { n: 1 }], "n").map((x) => x.n)', [1, 2]],
        ['_.reduce({ a: 1, b: 2 }, (sum, v) => sum + v, 0)', 3],
        [
          '[_.isEmpty({}), _.isEmpty([1]), _.isEmpty(null), _.isString("a"), _.isEqual({ a: [1] }, { a: [1] })]',
          [true, false, true, true, true],
        ],
        [
          '[_.camelCase("Foo bar-baz"), _.snakeCase("fooBar"), _.startCase("fooBar"), _.capitalize("fOO")]',
          ['fooBarBaz', 'foo_bar', 'Foo Bar', 'Foo'],
        ],
        ['_.uniq([1, 1, 2]).concat(_.compact([0, 3]))', [1, 2, 3]],
        ['_.mapValues({ a: 1 }, (v) => v + 1)', { a: 2 }],
        [
          '(_.merge({}, JSON.parse(\'{"__proto__":{"x":1}}\')), _.set({}, "__proto__.x", 1), ({}).x ?? null)',
          null,
        ],
      ],
      'const _ = require("lodash")',
    ),
  );

  describe('request, which', () => {
    const echo = (options: string, pick = 'b') =>
      result(
        `return new Promise((r) => request(${options}, (e, resp, b) => r(e ? { error: e.message, code: e.code } : ${pick})))`,
      );

    it('sends forms, JSON, queries, headers and credentials', async () => {
      expect(
        await echo(
          '{ url: URL_ + "/echo", qs: { a: "x y", b: [1] }, json: true, auth: { user: "u", pass: "p" } }',
        ),
      ).to.deep.include({
        method: 'GET',
        url: '/echo?a=x+y&b%5B0%5D=1',
      });
      const form = await echo(
        '{ method: "POST", uri: URL_ + "/echo", form: { a: "x y", "b": "é" }, json: true }',
      );
      expect([form.body, form.headers['content-type']]).to.deep.equal([
        'a=x%20y&b=%C3%A9',
        'application/x-www-form-urlencoded',
      ]);
      const json = await echo(
        '{ method: "put", url: URL_ + "/echo", json: { a: 1 }, headers: { "X-One": "1" } }',
      );
      expect([json.method, json.body, json.headers['content-type'], json.headers['x-one']]).to.deep.equal([
        'PUT',
        '{"a":1}',
        'application/json',
        '1',
      ]);
      const auth = await echo('{ url: URL_ + "/echo", json: true, auth: { username: "u", password: "p" } }');
      expect(auth.headers.authorization).to.equal('Basic dTpw');
      expect(
        (await echo('{ url: URL_ + "/echo", json: true, auth: { bearer: "t" } }')).headers.authorization,
      ).to.equal('Bearer t');
    });

    it('has get, post, put, delete and defaults, with all of their signatures', async () => {
      const found = await result(`
        const done = (run) => new Promise((r) => run((e, resp, b) => r(b && [b.method, b.body])));
        const base = request.defaults({ baseUrl: URL_, json: true });
        return [
          await done((cb) => request.get(URL_ + '/echo', { json: true }, cb)),
          await done((cb) => request.post({ url: URL_ + '/echo', json: true, body: { a: 1 } }, cb)),
          await done((cb) => request.put(URL_ + '/echo', { json: true, form: 'x=1' }, cb)),
          await done((cb) => request.delete(URL_ + '/echo', { json: true }, cb)),
          await done((cb) => base.del('/echo', cb)),
          await done((cb) => request({ url: URL_ + '/echo', json: true, callback: cb })),
        ]`);
      expect(found).to.deep.equal([
        ['GET', ''],
        ['POST', '{"a":1}'],
        ['PUT', 'x=1'],
        ['DELETE', ''],
        ['DELETE', ''],
        ['GET', ''],
      ]);
    });

    it('returns text without json and Buffers with encoding null, and follows redirects of GET only', async () => {
      expect(
        await echo('URL_ + "/text"', '[typeof b, b, resp.statusCode, resp.statusMessage]'),
      ).to.deep.equal(['string', 'not { json', 200, 'OK']);
      expect(await echo('{ url: URL_ + "/text", json: true }')).to.equal('not { json');
      expect(
        await echo('{ url: URL_ + "/bytes", encoding: null }', '[Buffer.isBuffer(b), b.toString("hex")]'),
      ).to.deep.equal([true, '00fffe01']);
      expect(
        await echo(
          '{ url: URL_ + "/moved", headers: { authorization: "Bearer token" }, json: true }',
          'b.name',
        ),
      ).to.equal('Jane Doe');
      expect(await echo('{ url: URL_ + "/moved", method: "POST" }', 'resp.statusCode')).to.equal(302);
      expect(await echo('{ url: URL_ + "/moved", followRedirect: false }', 'resp.headers.location')).to.equal(
        '/userinfo',
      );
    });

    it('calls back with errors that have codes', async () => {
      expect(await echo('"http://127.0.0.1:1/"')).to.include({ code: 'ECONNREFUSED' });
      expect(await echo('{ url: URL_ + "/slow", timeout: 50 }')).to.include({ code: 'ETIMEDOUT' });
      expect(await echo('"ftp://127.0.0.1/"')).to.include({ code: 'EACCES' });
      expect(await echo('{ url: URL_ + "/echo", method: "BAD METHOD" }')).to.include({
        code: 'ERR_INVALID_ARG_VALUE',
      });
    });
  });

  it('FormData, Blob and File, as fetch sends them', async () => {
    const found = await result(`
      const form = new FormData();
      form.append('a "quoted"', 'é');
      form.append('list', '1'); form.append('list', '2'); form.append('gone', 'x'); form.delete('gone');
      form.set('file', new Blob(['one ', new Uint8Array([116, 119, 111])], { type: 'text/x' }), 'a.txt');
      const sent = await (await fetch(URL_ + '/echo', { method: 'POST', body: form })).json();
      const raw = await (await fetch(URL_ + '/echo', { method: 'POST', body: new Blob(['raw'], { type: 'text/y' }) })).json();
      return {
        body: sent.body, type: sent.headers['content-type'], raw: [raw.body, raw.headers['content-type']],
        list: form.getAll('list'), has: [form.has('file'), form.has('gone')], names: [...form.keys()],
        file: [form.get('file') instanceof File, form.get('file').name, form.get('file').size],
        part: await new Blob(['abcdef']).slice(1, 3).text(), none: {} instanceof FormData,
      };`);
    const { body, type, ...known } = found as { body: string; type: string } & Record<string, unknown>;
    const [, boundary] = type.match(/^multipart\/form-data; boundary=([\w-]+)$/) ?? [];
    expect(body.split(`--${boundary}`)).to.deep.equal([
      '',
      '\r\nContent-Disposition: form-data; name="a %22quoted%22"\r\n\r\né\r\n',
      '\r\nContent-Disposition: form-data; name="list"\r\n\r\n1\r\n',
      '\r\nContent-Disposition: form-data; name="list"\r\n\r\n2\r\n',
      '\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/x\r\n\r\none two\r\n',
      '--\r\n',
    ]);
    expect(known).to.deep.equal({
      raw: ['raw', 'text/y'],
      list: ['1', '2'],
      has: [true, false],
      names: ['a "quoted"', 'list', 'list', 'file'],
      file: [true, 'a.txt', 7],
      part: 'bc',
      none: false,
    });
  });

  it('fetch, with Headers, Response and AbortSignal.timeout', async () => {
    const found = await result(`
      const echo = await fetch(URL_ + '/echo', { method: 'POST', body: new URLSearchParams({ a: 'é' }), headers: new Headers({ 'X-A': '1' }) });
      const seen = await echo.json();
      const failed = (work) => work.then(() => 'passed', (e) => e.name);
      return {
        ok: echo.ok, type: echo.headers.get('Content-Type'), url: echo.url === URL_ + '/echo',
        seen: [seen.method, seen.body, seen.headers['x-a'], seen.headers['content-type']],
        bytes: [...new Uint8Array(await (await fetch(URL_ + '/bytes')).arrayBuffer())],
        status: (await fetch(URL_ + '/none')).status,
        moved: (await fetch(URL_ + '/moved', { redirect: 'manual' })).status,
        error: await failed(fetch(URL_ + '/moved', { redirect: 'error' })),
        late: await failed(fetch(URL_ + '/slow', { signal: AbortSignal.timeout(30) })),
        refused: await failed(fetch('http://127.0.0.1:1')),
        made: await new Response('x', { status: 201 }).text(),
        twice: await failed((async () => { const r = new Response('x'); await r.text(); await r.text() })()),
      };`);
    expect(found).to.deep.equal({
      ok: true,
      type: 'application/json',
      url: true,
      seen: ['POST', 'a=%C3%A9', '1', 'application/x-www-form-urlencoded;charset=UTF-8'],
      bytes: [0, 255, 254, 1],
      status: 404,
      moved: 302,
      error: 'TypeError',
      late: 'TimeoutError',
      refused: 'TypeError',
      made: 'x',
      twice: 'TypeError',
    });
  });

  it('axios', async () => {
    const found = await result(`
      const axios = require('axios');
      const own = axios.create({ baseURL: URL_, headers: { 'X-A': '1' }, auth: { username: 'u', password: 'p' } });
      own.interceptors.request.use((config) => ({ ...config, params: { ...config.params, i: 1 } }));
      const posted = (await own.post('/echo', { a: 1 }, { params: { q: 'x y' } })).data;
      const error = await axios.get(URL_ + '/none').catch((e) => e);
      return {
        posted: [posted.method, posted.url, posted.body, posted.headers['content-type'], posted.headers['x-a'], posted.headers.authorization],
        form: (await axios.post(URL_ + '/echo', new URLSearchParams({ b: '2' }))).data.body,
        qs: (await axios({ method: 'post', url: URL_ + '/echo', data: require('querystring').stringify({ c: 3 }) })).data.headers['content-type'],
        error: [error.message, error.response.status, axios.isAxiosError(error), error.code],
        valid: (await axios.get(URL_ + '/none', { validateStatus: () => true })).status,
        text: (await axios.get(URL_ + '/text')).data,
        late: (await axios.get(URL_ + '/slow', { timeout: 30 }).catch((e) => e)).code,
        refused: (await axios.get('http://127.0.0.1:1').catch((e) => e)).code,
      };`);
    expect(found).to.deep.equal({
      posted: ['POST', '/echo?q=x+y&i=1', '{"a":1}', 'application/json', '1', 'Basic dTpw'],
      form: 'b=2',
      qs: 'application/x-www-form-urlencoded',
      error: ['Request failed with status code 404', 404, true, 'ERR_BAD_REQUEST'],
      valid: 404,
      text: 'not { json',
      late: 'ECONNABORTED',
      refused: 'ECONNREFUSED',
    });
  });

  it('the clients of http and https, whose responses emit events', async () => {
    const found = await result(`
      const ask = (module, ...given) => new Promise((resolve, reject) => {
        const { body, ...how } = given[given.length - 1];
        const asked = require(module).request(...given.slice(0, -1), how, (res) => {
          let text = '';
          res.on('data', (chunk) => { text += chunk; });
          res.on('end', () => resolve({ status: res.statusCode, type: res.headers['content-type'], text }));
        });
        asked.on('error', reject);
        if (body) asked.write(body);
        asked.end();
      });
      const { hostname, port } = new URL(URL_);
      const posted = await ask('http', { hostname, port, path: '/echo?q=1', method: 'post', auth: 'u:p', headers: { 'X-A': 1 }, body: 'ab' });
      const sent = JSON.parse(posted.text);
      const got = await new Promise((resolve) => require('node:http').get(URL_ + '/echo', async (res) => {
        res.setEncoding('utf8');
        let text = '';
        for await (const chunk of res) text += chunk;
        resolve(JSON.parse(text).url);
      }));
      return {
        posted: [posted.status, posted.type, sent.method, sent.url, sent.body, sent.headers['x-a'], sent.headers.authorization],
        got,
        moved: (await ask('http', URL_ + '/moved', {})).status,
        failed: await ask('https', { host: '127.0.0.1', port: 1, path: '/' }).catch((error) => error.code),
        aborted: await new Promise((resolve) => {
          const asked = require('https').get('https://127.0.0.1:1/');
          asked.on('error', (error) => resolve(error.message));
          asked.destroy(new Error('no more'));
        }),
        inside: await ask('http', 'http://169.254.169.254/', {}).catch((error) => error.code),
        more: ['createServer', 'Server', 'globalAgent'].filter((name) => name in require('https')),
      };`);
    expect(found).to.deep.equal({
      posted: [200, 'application/json', 'POST', '/echo?q=1', 'ab', '1', 'Basic dTpw'],
      got: '/echo',
      moved: 302,
      failed: 'ECONNREFUSED',
      aborted: 'no more',
      inside: 'EACCES',
      more: [],
    });
  });
});
