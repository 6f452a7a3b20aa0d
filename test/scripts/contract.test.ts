// The contract of a script: its forms, its arguments, and its answers.
import { expect } from 'chai';
import { PROFILE, type Provider, startProvider, startSandbox } from './support.ts';

/** Ten published scripts, each of another form; `URL_` is the provider's address. */
const PUBLISHED: Record<string, string> = {
  'an anonymous function with request.get': `function(accessToken, ctx, cb) {
    request.get('URL_/userinfo', { headers: { 'Authorization': 'Bearer ' + accessToken } }, function(e, r, b) {
      if (e) return cb(e);
      if (r.statusCode !== 200) return cb(new Error('StatusCode: ' + r.statusCode));
      var profile = JSON.parse(b);
      cb(null, { user_id: profile.sub, name: profile.name, email: profile.email });
    });
  }`,
  'a named function with request(options)': `function fetchUserProfile(accessToken, context, callback) {
    request({ method: 'GET', url: 'URL_/userinfo', headers: { Authorization: \`Bearer \${accessToken}\` }, json: true },
      (err, resp, body) => {
        if (err) { return callback(err); }
        if (resp.statusCode !== 200) { return callback(new Error(body)); }
        callback(null, { user_id: body.sub, name: body.name, email: body.email });
      });
  }`,
  'the common example': `
  // documented by many providers
  function fetchUserProfile(accessToken, context, callback) {
    request.get(
      {
        url: 'URL_/userinfo',
        headers: { 'Authorization': 'Bearer ' + accessToken, }
      },
      (err, resp, body) => {
        if (err) { return callback(err); }
        if (resp.statusCode !== 200) { return callback(new Error(body)); }
        let bodyParsed;
        try { bodyParsed = JSON.parse(body); } catch (jsonError) { return callback(new Error(body)); }
        const profile = { user_id: bodyParsed.sub, name: bodyParsed.name, email: bodyParsed.email };
        callback(null, profile);
      }
    );
  };
  `,
  'module.exports with axios and promises': `const axios = require('axios');
  module.exports = function (accessToken, ctx, cb) {
    axios.get('URL_/userinfo', { headers: { Authorization: 'Bearer ' + accessToken } })
      .then(({ data }) => cb(null, { user_id: data.sub, name: data.name, email: data.email }))
      .catch((error) => cb(error));
  };`,
  'exports.fetchUserProfile with fetch and async': `"use strict";
  exports.fetchUserProfile = async (accessToken, context, callback) => {
    try {
      const response = await fetch('URL_/userinfo', {
        headers: { Authorization: \`Bearer \${accessToken}\` },
        signal: AbortSignal.timeout(5000),
      });
      if (!response.ok) throw new Error('not ok');
      const { sub, name, email } = await response.json();
      return callback(null, { user_id: sub, name, email });
    } catch (error) { return callback(error); }
  };`,
  'a function that is called and returns one': `(function () {
    'use strict';
    var log = function (m) { console.log('[profile] %s', m); };
    return function (token, ctx, done) {
      log('start');
      request({ uri: 'URL_/userinfo', auth: { bearer: token }, json: true }, function (e, r, b) {
        done(e, b && { user_id: b.sub, name: b.name, email: b.email });
      });
    };
  })();`,
  'a minified bundle (UMD)': `!function(e,t){"object"==typeof exports&&"object"==typeof module?module.exports=t():"function"==typeof define&&define.amd?define([],t):e.p=t()}(this,(function(){return function(e){var t={};function n(r){if(t[r])return t[r].exports;var o=t[r]={i:r,l:!1,exports:{}};return e[r].call(o.exports,o,o.exports,n),o.l=!0,o.exports}return n(0)}([function(e,t){e.exports=function(e,t,n){request.get({url:"URL_/userinfo",headers:{Authorization:"Bearer "+e},json:!0},(function(e,t,r){n(e,r&&{user_id:r.sub,name:r.name,email:r.email})}))}}])}));`,
  'an async arrow that returns the profile, with node-fetch and a version': `async (accessToken) => {
    const fetch = require('node-fetch@2.6.1');
    const { sub, name, email } = await (await fetch('URL_/userinfo', { headers: { authorization: 'Bearer ' + accessToken } })).json();
    return { user_id: sub, name, email };
  }`,
  'promisify, helpers beside it, and the old Buffer': `const { promisify } = require('util');
  const get = promisify(request.get);
  const pick = (o) => ({ user_id: o.sub, name: o.name, email: o.email });
  async function fetchUserProfile(accessToken, context, callback) {
    const { body } = await get({ url: 'URL_/userinfo', headers: { Authorization: 'Bearer ' + new Buffer('token').toString('utf8') } });
    callback(null, pick(JSON.parse(body)));
  }`,
  'an ES5 bundle with defaults (module.exports.default)': `Object.defineProperty(exports, "__esModule", { value: true });
  exports.default = fetchProfile;
  function fetchProfile(token, context, cb) {
    setTimeout(function () {
      request.post('URL_/userinfo', { form: { a: 1 }, headers: { Authorization: 'Bearer ' + token } }, function (err, res, raw) {
        var body = JSON.parse(raw);
        cb(err, { user_id: body.sub, name: body.name, email: body.email });
      });
    }, 10);
  }`,
};

describe('a script', () => {
  let provider: Provider;
  let sandbox: ReturnType<typeof startSandbox>;
  before(async () => {
    provider = await startProvider();
    sandbox = startSandbox();
  });
  after(async () => {
    await sandbox.stop();
    await provider.stop();
  });
  const at = (source: string) => source.replaceAll('URL_', provider.url);

  describe('is accepted as', () => {
    for (const [form, source] of Object.entries(PUBLISHED)) {
      it(form, async () => {
        const outcome = await sandbox.run(at(source));
        expect(outcome.failure).to.equal(undefined);
        expect(outcome.result).to.deep.equal({
          user_id: PROFILE.sub,
          name: PROFILE.name,
          email: PROFILE.email,
        });
        expect(outcome.used.requests).to.equal(1);
      });
    }

    it('a function of another name, such as getLogoutUrl', async () => {
      const source =
        'function getLogoutUrl(query, callback) { callback(null, "https://x/?r=" + query.returnTo) }';
      const outcome = await sandbox.run(source, { entry: 'getLogoutUrl', args: [{ returnTo: 'y' }] });
      expect(outcome.result).to.equal('https://x/?r=y');
    });

    for (const [what, source, message] of [
      ['no JavaScript', 'function (a, b { }', /./],
      ['no function', '({ user_id: 1 })', /no function fetchUserProfile/],
      ['nothing', '  ', /no function fetchUserProfile/],
    ] as const) {
      it(`a script, and rejected with ${what}`, async () => {
        const { failure } = await sandbox.run(source);
        expect(failure).to.include({ kind: 'syntax' });
        expect(failure?.message).to.match(message);
      });
    }

    it('a text of at most 102,400 characters', async () => {
      const source = 'function(a,c,cb){cb(null,1)}';
      const fill = (length: number) => `${source}//${'x'.repeat(length - source.length - 2)}`;
      expect(await sandbox.run(fill(102_400))).to.include({ result: 1 });
      expect((await sandbox.run(fill(102_401))).failure).to.include({ kind: 'source' });
    });
  });

  describe('gets', () => {
    it('the access token, the context and a callback', async () => {
      const context = {
        access_token: 'token',
        id_token: 'e30.e30.',
        expires_in: 3600,
        tenant: 't',
        user_id: 7,
      };
      const outcome = await sandbox.run(
        'function(token, ctx, cb) { cb(null, { token, ctx, n: arguments.length, isPlain: ctx.constructor === Object }) }',
        { args: ['token', context] },
      );
      expect(outcome.result).to.deep.equal({ token: 'token', ctx: context, n: 3, isPlain: true });
    });

    it('further globals', async () => {
      const outcome = await sandbox.run('async () => configuration.key', {
        globals: { configuration: { key: 'v' } },
        args: [],
      });
      expect(outcome.result).to.equal('v');
    });

    it('no module except those of the sandbox: the error names a missing one', async () => {
      for (const name of ['fs', 'node:child_process', 'left-pad', '@scope/x@1.0.0', '../runtime', 'fetch']) {
        const { failure } = await sandbox.run(`function(a,c,cb) { require('${name}') }`);
        expect(failure).to.include({ kind: 'script', name: 'Error' });
        expect(failure?.message).to.match(new RegExp(`^Cannot find module '${name}'`));
      }
    });
  });

  describe('answers', () => {
    const answers: [string, string, object][] = [
      ['with an Error', 'cb(new Error("no"))', { kind: 'script', name: 'Error', message: 'no' }],
      ['with an error in text', 'cb("no")', { kind: 'script', name: 'Error', message: 'no' }],
      ['with an error object', 'cb({ error_description: "no" })', { kind: 'script', message: 'no' }],
      [
        'with a kind of error',
        'cb(new UnauthorizedError("no"))',
        { kind: 'script', name: 'UnauthorizedError', message: 'no' },
      ],
      ['by throwing', 'throw new TypeError("no")', { kind: 'script', name: 'TypeError', message: 'no' }],
      ['by throwing text', 'throw "no"', { kind: 'script', message: 'no' }],
      [
        'by throwing later',
        'setTimeout(() => { throw new Error("no") }, 1)',
        { kind: 'script', message: 'no' },
      ],
      ['by a rejection', 'return Promise.reject(new Error("no"))', { kind: 'script', message: 'no' }],
      [
        'by a body that is no JSON',
        'request.get("URL_/text", (e, r, b) => cb(null, JSON.parse(b)))',
        { kind: 'script', name: 'SyntaxError' },
      ],
      [
        'by an address that nobody listens on',
        'request.get("http://127.0.0.1:1/", (e) => cb(e))',
        { kind: 'script', message: '127.0.0.1:1 could not be reached' },
      ],
      [
        'with a value that JSON cannot hold',
        'const x = {}; x.x = x; cb(null, x)',
        { kind: 'script', name: 'TypeError' },
      ],
      ['never, with nothing left to do', '', { kind: 'unanswered' }],
      [
        'never, when it only waits for a promise that never settles',
        'new Promise(() => {})',
        { kind: 'unanswered' },
      ],
    ];
    for (const [how, body, expected] of answers) {
      it(`${how}, which is a failure`, async () => {
        const { failure, result } = await sandbox.run(at(`function(a, c, cb) { ${body} }`));
        expect(result).to.equal(undefined);
        expect(failure).to.include(expected);
      });
    }

    const once: [string, string, unknown][] = [
      ['the first of two callbacks', 'cb(null, 1); cb(null, 2)', 1],
      ['a callback before an error', 'cb(null, 1); cb(new Error("late"))', 1],
      ['a callback before a throw', 'cb(null, 1); throw new Error("late")', 1],
      ['a callback before a rejection', 'cb(null, 1); return Promise.reject(new Error("late"))', 1],
      ['a callback later than the end', 'setTimeout(() => cb(null, 1), 20)', 1],
      [
        'a callback with timers left',
        'setInterval(() => {}, 1); setTimeout(() => {}, 60000); cb(null, 1)',
        1,
      ],
      [
        'a callback from a promise',
        'Promise.resolve().then(() => cb(null, 1)); return Promise.resolve(2)',
        1,
      ],
      ['nothing', 'cb()', null],
      ['null', 'cb(null, null)', null],
    ];
    for (const [what, body, expected] of once) {
      it(`with ${what}`, async () => {
        const outcome = await sandbox.run(`function(a, c, cb) { ${body} }`);
        expect(outcome.failure).to.equal(undefined);
        expect(outcome.result).to.deep.equal(expected);
      });
    }

    it('with the promise, where it takes no callback', async () => {
      expect(await sandbox.run('async (a) => ({ a })')).to.deep.include({ result: { a: 'token' } });
      expect(await sandbox.run('() => Promise.resolve(7)')).to.include({ result: 7 });
    });
  });

  it('prints to the log of its connection', async () => {
    const source =
      'function(a,c,cb) { console.log("a", 1, { b: [true, null] }); console.error("%s=%d", "x", 2); cb(null, 1) }';
    const { printed } = await sandbox.run(source, { of: 'github-like' });
    expect(printed).to.deep.equal([
      { level: 'info', text: 'a 1 { b: [ true, null ] }' },
      { level: 'error', text: 'x=2' },
    ]);
    expect(sandbox.scripts.log.runs()[0]).to.deep.include({
      of: 'github-like',
      entry: 'fetchUserProfile',
      printed,
    });
  });

  it('prints any text unchanged', async () => {
    const texts = [
      '',
      ';',
      '1,2;',
      'a\0b',
      '\0',
      '\ud800',
      'x\ud800\0y',
      '\ufffd',
      '\ufffdx\0',
      '😀é\u2028',
      '\udc00',
    ];
    const { printed } = await sandbox.run(
      `function(a,c,cb) { for (const one of ${JSON.stringify(texts)}) console.log(one); cb(null, 1) }`,
    );
    expect(printed.map(({ text }) => text)).to.deep.equal(texts);
  });
});
