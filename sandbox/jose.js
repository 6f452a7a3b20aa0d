// jose: the part for signed tokens and key sets that scripts use.
(module, load, host) => {
  const { Buffer, plain } = load('buffer');
  const { keyText } = load('crypto');
  const errors = {};
  const kind = (name, code, parent) => {
    errors[name] = class extends (parent ?? Error) {
      constructor(message, details = {}) {
        super(message);
        Object.assign(this, { name, code }, details);
      }
    };
  };
  kind('JOSEError', 'ERR_JOSE_GENERIC');
  kind('JWTInvalid', 'ERR_JWT_INVALID', errors.JOSEError);
  kind('JWTClaimValidationFailed', 'ERR_JWT_CLAIM_VALIDATION_FAILED', errors.JOSEError);
  kind('JWTExpired', 'ERR_JWT_EXPIRED', errors.JOSEError);
  kind('JWSInvalid', 'ERR_JWS_INVALID', errors.JOSEError);
  kind('JWSSignatureVerificationFailed', 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED', errors.JOSEError);
  kind('JOSEAlgNotAllowed', 'ERR_JOSE_ALG_NOT_ALLOWED', errors.JOSEError);
  kind('JWKSNoMatchingKey', 'ERR_JWKS_NO_MATCHING_KEY', errors.JOSEError);
  kind('JWKSTimeout', 'ERR_JWKS_TIMEOUT', errors.JOSEError);

  const textOf = (bytes) => Buffer.from(bytes).toString();
  const base64url = {
    encode: (value) => Buffer.from(typeof value === 'string' ? value : plain(value)).toString('base64url'),
    decode: (text) =>
      new Uint8Array(plain(Buffer.from(typeof text === 'string' ? text : textOf(text), 'base64url'))),
  };
  const part = (token, at, message) => {
    try {
      const value = JSON.parse(textOf(base64url.decode(String(token).split('.')[at])));
      if (typeof value !== 'object' || value === null) throw new Error();
      return value;
    } catch {
      throw new errors.JWTInvalid(message);
    }
  };
  const decodeJwt = (token) => {
    if (String(token).split('.').length !== 3) throw new errors.JWTInvalid('Invalid JWT');
    return part(token, 1, 'Invalid JWT Claims Set');
  };
  const decodeProtectedHeader = (token) =>
    part(token?.protected ? `${token.protected}.` : token, 0, 'Invalid Token or Protected Header formatting');

  const isPair = (text) => {
    const { text: pem = '', jwk } = JSON.parse(text);
    return pem.includes('-----BEGIN') || (jwk !== undefined && jwk.kty !== 'oct');
  };
  const compactVerify = async (token, given, options = {}) => {
    const parts = String(typeof token === 'string' ? token : textOf(token)).split('.');
    if (parts.length !== 3) throw new errors.JWSInvalid('Invalid Compact JWS');
    const protectedHeader = decodeProtectedHeader(parts.join('.'));
    const { alg } = protectedHeader;
    if (options.algorithms && !options.algorithms.includes(alg)) {
      throw new errors.JOSEAlgNotAllowed('"alg" (Algorithm) Header Parameter value not allowed');
    }
    const key =
      typeof given === 'function'
        ? await given(protectedHeader, { payload: parts[1], signature: parts[2] })
        : given;
    const text = keyText(key);
    if (String(alg).startsWith('HS') === isPair(text))
      throw new TypeError(`the key is not one for the algorithm ${alg}`);
    const data = plain(Buffer.from(`${parts[0]}.${parts[1]}`));
    const signature = plain(Buffer.from(parts[2], 'base64url'));
    if (host('verify', String(alg), text, data, signature) !== 'true') {
      throw new errors.JWSSignatureVerificationFailed('signature verification failed');
    }
    return { payload: base64url.decode(parts[1]), protectedHeader };
  };

  const UNITS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800, y: 31557600 };
  const seconds = (span) => {
    if (typeof span === 'number') return span;
    const [, amount, unit] =
      /^\+?\s*(-?[\d.]+)\s*(s|m|h|d|w|y)[a-z]*(?: from now)?$/i.exec(String(span).trim()) ?? [];
    if (amount === undefined) throw new TypeError('Invalid time period format');
    return Number(amount) * UNITS[unit.toLowerCase()];
  };
  const timeOf = (value) => {
    if (value instanceof Date) return Math.floor(value / 1000);
    return typeof value === 'number' ? value : Math.floor(Date.now() / 1000) + seconds(value);
  };

  const checkClaims = (claims, options) => {
    const wrong = (claim, message, reason = 'check_failed') => {
      const details = { claim, reason, payload: claims };
      if (claim === 'exp' && reason === 'check_failed') throw new errors.JWTExpired(message, details);
      throw new errors.JWTClaimValidationFailed(message, details);
    };
    const required = [...(options.requiredClaims ?? [])];
    for (const [option, claim] of [
      ['issuer', 'iss'],
      ['audience', 'aud'],
      ['subject', 'sub'],
      ['maxTokenAge', 'iat'],
    ]) {
      if (options[option] !== undefined) required.push(claim);
    }
    for (const claim of required)
      if (claims[claim] === undefined) wrong(claim, `missing required "${claim}" claim`, 'missing');
    const isOne = (wanted, value) => [].concat(wanted).some((one) => [].concat(value).includes(one));
    if (options.issuer !== undefined && !isOne(options.issuer, claims.iss))
      wrong('iss', 'unexpected "iss" claim value');
    if (options.subject !== undefined && options.subject !== claims.sub)
      wrong('sub', 'unexpected "sub" claim value');
    if (options.audience !== undefined && !isOne(options.audience, claims.aud))
      wrong('aud', 'unexpected "aud" claim value');
    const slack = options.clockTolerance === undefined ? 0 : seconds(options.clockTolerance);
    const now = Math.floor((options.currentDate ?? new Date()) / 1000);
    for (const claim of ['nbf', 'exp', 'iat']) {
      if (claims[claim] !== undefined && typeof claims[claim] !== 'number')
        wrong(claim, `"${claim}" claim must be a number`, 'invalid');
    }
    if (claims.nbf > now + slack) wrong('nbf', '"nbf" claim timestamp check failed');
    if (claims.exp <= now - slack) wrong('exp', '"exp" claim timestamp check failed');
    if (options.maxTokenAge !== undefined) {
      const age = now - claims.iat;
      if (age - slack > seconds(options.maxTokenAge))
        throw new errors.JWTExpired('"iat" claim timestamp check failed (too far in the past)', {
          claim: 'iat',
        });
      if (age < -slack) wrong('iat', '"iat" claim timestamp check failed (it should be in the past)');
    }
  };
  const jwtVerify = async (token, key, options = {}) => {
    const { payload, protectedHeader } = await compactVerify(token, key, options);
    let claims;
    try {
      claims = JSON.parse(textOf(payload));
    } catch {
      throw new errors.JWTInvalid('JWT Claims Set must be a top-level JSON object');
    }
    if (options.typ !== undefined && protectedHeader.typ?.toLowerCase() !== options.typ.toLowerCase()) {
      throw new errors.JWTClaimValidationFailed('unexpected "typ" JWT header value', {
        claim: 'typ',
        reason: 'check_failed',
      });
    }
    checkClaims(claims, options);
    return { payload: claims, protectedHeader };
  };

  class CompactSign {
    #payload;
    #header;
    constructor(payload) {
      this.#payload = payload;
    }
    setProtectedHeader(header) {
      this.#header = header;
      return this;
    }
    async sign(key) {
      const signed = `${base64url.encode(JSON.stringify(this.#header))}.${base64url.encode(this.#payload)}`;
      const signature = host('sign', this.#header.alg, keyText(key), plain(Buffer.from(signed)));
      return `${signed}.${base64url.encode(new Uint8Array(signature))}`;
    }
  }
  class SignJWT {
    #claims;
    #header;
    constructor(claims = {}) {
      this.#claims = { ...claims };
    }
    #set(claim, value) {
      this.#claims[claim] = value;
      return this;
    }
    setProtectedHeader(header) {
      this.#header = header;
      return this;
    }
    setIssuer(value) {
      return this.#set('iss', value);
    }
    setSubject(value) {
      return this.#set('sub', value);
    }
    setAudience(value) {
      return this.#set('aud', value);
    }
    setJti(value) {
      return this.#set('jti', value);
    }
    setIssuedAt(value) {
      return this.#set('iat', value === undefined ? Math.floor(Date.now() / 1000) : timeOf(value));
    }
    setExpirationTime(value) {
      return this.#set('exp', timeOf(value));
    }
    setNotBefore(value) {
      return this.#set('nbf', timeOf(value));
    }
    sign(key) {
      return new CompactSign(JSON.stringify(this.#claims)).setProtectedHeader(this.#header).sign(key);
    }
  }

  const keyIn = ({ keys }, { alg = '', kid }) => {
    const kty = { RS: 'RSA', PS: 'RSA', ES: 'EC', Ed: 'OKP', HS: 'oct' }[alg.slice(0, 2)];
    const found = keys.filter(
      (one) =>
        one.kty === kty &&
        (kid === undefined || one.kid === kid) &&
        (one.use === undefined || one.use === 'sig') &&
        (one.alg === undefined || one.alg === alg),
    );
    if (found.length !== 1)
      throw new errors.JWKSNoMatchingKey(
        found.length === 0
          ? 'no applicable key found in the JSON Web Key Set'
          : 'multiple matching keys found in the JSON Web Key Set',
      );
    return { type: 'public', __key: { jwk: found[0] } };
  };
  const createLocalJWKSet = (set) => async (header) => keyIn(set, header);
  const createRemoteJWKSet = (address, options = {}) => {
    let set;
    const load_ = async () => {
      const response = await load('fetch').fetch(String(address), {
        headers: options.headers,
        timeout: options.timeoutDuration,
      });
      if (response.status !== 200)
        throw new errors.JOSEError('Expected 200 OK from the JSON Web Key Set HTTP response');
      set = await response.json();
    };
    return async (header) => {
      if (set === undefined) await load_();
      return keyIn(set, header);
    };
  };
  const imported = (type) => async (text) => ({ ...load('crypto').createPublicKey(text), type });
  module.exports = {
    base64url,
    decodeJwt,
    decodeProtectedHeader,
    compactVerify,
    jwtVerify,
    CompactSign,
    SignJWT,
    createLocalJWKSet,
    createRemoteJWKSet,
    importJWK: async (jwk) => ({
      type: jwk.kty === 'oct' ? 'secret' : jwk.d ? 'private' : 'public',
      __key: { jwk },
    }),
    importSPKI: imported('public'),
    importX509: imported('public'),
    importPKCS8: imported('private'),
    errors,
  };
};
