// jsonwebtoken: sign, verify, decode. The host computes signatures.
(module, load, host) => {
  const { Buffer, plain } = load('buffer');
  const { keyText } = load('crypto');

  class JsonWebTokenError extends Error {
    constructor(message, inner) {
      super(message);
      this.name = 'JsonWebTokenError';
      if (inner) this.inner = inner;
    }
  }
  class TokenExpiredError extends JsonWebTokenError {
    constructor(message, expiredAt) {
      super(message);
      Object.assign(this, { name: 'TokenExpiredError', expiredAt });
    }
  }
  class NotBeforeError extends JsonWebTokenError {
    constructor(message, date) {
      super(message);
      Object.assign(this, { name: 'NotBeforeError', date });
    }
  }

  const json = (part) => JSON.parse(Buffer.from(part, 'base64url').toString());
  const encode = (value) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
  const now = () => Math.floor(Date.now() / 1000);
  const UNITS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800, y: 31557600 };
  const seconds = (span) => {
    if (typeof span === 'number') return span;
    const [, amount, unit = 'ms'] = /^(-?[\d.]+)\s*(ms|s|m|h|d|w|y)?[a-z]*$/i.exec(String(span).trim()) ?? [];
    if (amount === undefined)
      throw new Error('"expiresIn" should be a number of seconds or string representing a timespan');
    return unit === 'ms' ? Number(amount) / 1000 : Number(amount) * UNITS[unit.toLowerCase()];
  };

  const decode = (token, options = {}) => {
    const parts = String(token).split('.');
    if (parts.length !== 3) return null;
    try {
      const header = json(parts[0]);
      let payload = Buffer.from(parts[1], 'base64url').toString();
      try {
        payload = JSON.parse(payload);
      } catch (error) {
        if (header.typ === 'JWT' || options.json) throw error;
      }
      return options.complete ? { header, payload, signature: parts[2] } : payload;
    } catch {
      return null;
    }
  };

  /** The default algorithms for a key: a public key is never the secret of an HMAC. */
  const algorithmsOf = (text) => {
    const { text: pem = '', jwk } = JSON.parse(text);
    const isPair = pem.includes('-----BEGIN') || (jwk !== undefined && jwk.kty !== 'oct');
    return isPair
      ? ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
      : ['HS256', 'HS384', 'HS512'];
  };
  const matches = (wanted, value) =>
    []
      .concat(wanted)
      .some((one) => [].concat(value).some((is) => (one instanceof RegExp ? one.test(is) : one === is)));

  const check = (payload, options) => {
    const at = options.clockTimestamp ?? now();
    const slack = options.clockTolerance ?? 0;
    if (typeof payload !== 'object' || payload === null) return;
    if (payload.nbf !== undefined && !options.ignoreNotBefore) {
      if (typeof payload.nbf !== 'number') throw new JsonWebTokenError('invalid nbf value');
      if (payload.nbf > at + slack) throw new NotBeforeError('jwt not active', new Date(payload.nbf * 1000));
    }
    if (payload.exp !== undefined && !options.ignoreExpiration) {
      if (typeof payload.exp !== 'number') throw new JsonWebTokenError('invalid exp value');
      if (at >= payload.exp + slack) throw new TokenExpiredError('jwt expired', new Date(payload.exp * 1000));
    }
    const wanted = [
      ['audience', 'aud'],
      ['issuer', 'iss'],
      ['subject', 'sub'],
      ['jwtid', 'jti'],
      ['nonce', 'nonce'],
    ];
    for (const [option, claim] of wanted) {
      if (options[option] && !matches(options[option], payload[claim])) {
        const what = option === 'nonce' ? 'nonce' : `jwt ${option}`;
        throw new JsonWebTokenError(`${what} invalid. expected: ${[].concat(options[option]).join(' or ')}`);
      }
    }
    if (options.maxAge !== undefined) {
      if (typeof payload.iat !== 'number')
        throw new JsonWebTokenError('iat required when maxAge is specified');
      const until = payload.iat + seconds(options.maxAge);
      if (at >= until + slack) throw new TokenExpiredError('maxAge exceeded', new Date(until * 1000));
    }
  };

  const verifyWith = (token, key, options) => {
    const decoded = decode(token, { complete: true });
    if (decoded === null)
      throw new JsonWebTokenError(String(token).split('.').length === 3 ? 'invalid token' : 'jwt malformed');
    if (!key) throw new JsonWebTokenError('secret or public key must be provided');
    if (decoded.signature === '') throw new JsonWebTokenError('jwt signature is required');
    const { header, payload } = decoded;
    const text = keyText(key);
    const allowed = options.algorithms ?? algorithmsOf(text);
    if (!allowed.includes(header.alg)) throw new JsonWebTokenError('invalid algorithm');
    const [head, body, signature] = token.split('.');
    let isValid = false;
    try {
      const data = plain(Buffer.from(`${head}.${body}`));
      isValid = host('verify', header.alg, text, data, plain(Buffer.from(signature, 'base64url'))) === 'true';
    } catch (error) {
      throw new JsonWebTokenError(error.message, error);
    }
    if (!isValid) throw new JsonWebTokenError('invalid signature');
    check(payload, options);
    return options.complete ? decoded : payload;
  };

  const answering = (work, done) => {
    if (typeof done !== 'function') return work();
    try {
      const value = work();
      setTimeout(done, 0, null, value);
    } catch (error) {
      setTimeout(done, 0, error);
    }
  };

  const verify = (token, key, given, callback) => {
    const done = typeof given === 'function' ? given : callback;
    const options = typeof given === 'object' && given !== null ? given : {};
    if (typeof token !== 'string')
      return answering(() => {
        throw new JsonWebTokenError(token ? 'jwt must be a string' : 'jwt must be provided');
      }, done);
    if (typeof key !== 'function') return answering(() => verifyWith(token, key, options), done);
    if (typeof done !== 'function')
      throw new JsonWebTokenError(
        'verify must be called asynchronous if secret or public key is provided as a callback',
      );
    const header = decode(token, { complete: true })?.header;
    if (header === undefined) return done(new JsonWebTokenError('jwt malformed'));
    key(header, (error, found) => {
      if (error)
        return done(new JsonWebTokenError(`error in secret or public key callback: ${error.message}`));
      answering(() => verifyWith(token, found?.getPublicKey?.() ?? found, options), done);
    });
  };

  const sign = (payload, key, given, callback) => {
    const done = typeof given === 'function' ? given : callback;
    const options = typeof given === 'object' && given !== null ? given : {};
    return answering(() => {
      const { algorithm = 'HS256', header, keyid } = options;
      const head = { alg: algorithm, typ: 'JWT', ...(keyid && { kid: keyid }), ...header };
      let body = payload;
      if (typeof payload === 'object' && !Buffer.isBuffer(payload)) {
        const iat = payload.iat ?? now();
        body = { ...payload, ...(options.noTimestamp ? {} : { iat }) };
        if (options.expiresIn !== undefined) body.exp = Math.floor(iat + seconds(options.expiresIn));
        if (options.notBefore !== undefined) body.nbf = Math.floor(iat + seconds(options.notBefore));
        for (const [option, claim] of [
          ['audience', 'aud'],
          ['issuer', 'iss'],
          ['subject', 'sub'],
          ['jwtid', 'jti'],
        ]) {
          if (options[option] !== undefined) body[claim] = options[option];
        }
      }
      const signed = `${encode(head)}.${encode(body)}`;
      const signature = host('sign', head.alg, keyText(key), plain(Buffer.from(signed)));
      return `${signed}.${Buffer.from(signature).toString('base64url')}`;
    }, done);
  };
  module.exports = { sign, verify, decode, JsonWebTokenError, TokenExpiredError, NotBeforeError };
  module.exports.default = module.exports;
};
