// crypto: the part of Node's and of the browser's that scripts use. The host computes.
(module, load, host) => {
  const { Buffer, plain } = load('buffer');
  const bytesOf = (value, encoding) => {
    if (typeof value === 'string') return plain(Buffer.from(value, encoding));
    return value instanceof ArrayBuffer ? value : plain(value);
  };
  const outputOf = (buffer, encoding) =>
    encoding === undefined || encoding === 'buffer'
      ? Buffer.from(buffer)
      : Buffer.from(buffer).toString(encoding);
  const joined = (parts) => plain(Buffer.concat(parts.map((one) => Buffer.from(one))));

  /** A key in the form of the host: PEM or secret text, bytes, or a JWK. */
  const keyText = (key) => {
    const inner = key?.__key ?? key?.key ?? key;
    if (key?.__key !== undefined) return JSON.stringify(key.__key);
    if (key?.format === 'jwk') return JSON.stringify({ jwk: key.key });
    if (typeof inner === 'string') return JSON.stringify({ text: inner, passphrase: key?.passphrase });
    if (inner instanceof ArrayBuffer || ArrayBuffer.isView(inner)) {
      return JSON.stringify({ bytes: Buffer.from(bytesOf(inner)).toString('base64') });
    }
    if (inner?.kty) return JSON.stringify({ jwk: inner });
    throw new TypeError('the key is neither text nor bytes nor a JWK');
  };
  const keyObject = (type) => (key) => ({ type, __key: JSON.parse(keyText(key)) });

  const digesting = (finish) => {
    const parts = [];
    const self = {
      update(data, encoding) {
        parts.push(bytesOf(data, encoding));
        return self;
      },
      digest: (encoding) => outputOf(finish(joined(parts)), encoding),
    };
    return self;
  };
  const name = (algorithm) =>
    String(algorithm?.name ?? algorithm)
      .toLowerCase()
      .replace(/^rsa-/, '')
      .replace('-', '');
  const getRandomValues = (array) => {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(
      new Uint8Array(host('random', String(array.byteLength))),
    );
    return array;
  };
  const randomBytes = (size, done) => {
    const bytes = Buffer.from(host('random', String(size)));
    if (typeof done !== 'function') return bytes;
    setTimeout(done, 0, null, bytes);
  };
  const pbkdf2Sync = (password, salt, iterations, keylen, digest = 'sha1') =>
    Buffer.from(
      host(
        'pbkdf2',
        bytesOf(password),
        bytesOf(salt),
        JSON.stringify({ iterations, keylen, digest: name(digest) }),
      ),
    );
  const pbkdf2 = (password, salt, iterations, keylen, ...rest) => {
    const done = rest.pop();
    let key;
    let failure = null;
    try {
      key = pbkdf2Sync(password, salt, iterations, keylen, ...rest);
    } catch (error) {
      failure = error;
    }
    setTimeout(done, 0, failure, key);
  };
  module.exports = {
    pbkdf2,
    pbkdf2Sync,
    randomUUID: () => host('uuid'),
    getRandomValues,
    randomBytes,
    randomInt: (min, max) => {
      const [from, to] = max === undefined ? [0, min] : [min, max];
      return (
        from + (Buffer.from(host('random', '6')).reduce((sum, byte) => sum * 256 + byte, 0) % (to - from))
      );
    },
    createHash: (algorithm) => digesting((data) => host('hash', name(algorithm), data)),
    createHmac: (algorithm, key) => digesting((data) => host('hmac', name(algorithm), keyText(key), data)),
    createSign: (algorithm) => {
      const signing = digesting((data) => data);
      return Object.assign(signing, {
        sign: (key, encoding) =>
          outputOf(
            host('sign', `node:${name(algorithm)}`, keyText(key), bytesOf(signing.digest())),
            encoding,
          ),
      });
    },
    createVerify: (algorithm) => {
      const checking = digesting((data) => data);
      return Object.assign(checking, {
        verify: (key, signature, encoding) =>
          host(
            'verify',
            `node:${name(algorithm)}`,
            keyText(key),
            bytesOf(checking.digest()),
            bytesOf(signature, encoding),
          ) === 'true',
      });
    },
    createPublicKey: keyObject('public'),
    createPrivateKey: keyObject('private'),
    createSecretKey: keyObject('secret'),
    timingSafeEqual: (a, b) => {
      const [x, y] = [new Uint8Array(bytesOf(a)), new Uint8Array(bytesOf(b))];
      if (x.length !== y.length) throw new RangeError('Input buffers must have the same byte length');
      return x.reduce((different, byte, at) => different | (byte ^ y[at]), 0) === 0;
    },
    subtle: {
      digest: async (algorithm, data) => host('hash', name(algorithm), bytesOf(data)),
    },
    webcrypto: undefined,
    /** For jsonwebtoken and jose. */
    keyText,
  };
  module.exports.webcrypto = module.exports;
};
