// uuid: random ids (v4), ids made of a name (v3, v5), and functions that read ids.
(module, load, host) => {
  const { Buffer, plain } = load('buffer');
  const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
  const NIL = '00000000-0000-0000-0000-000000000000';
  const v4 = () => host('uuid');
  const parse = (text) => new Uint8Array(plain(Buffer.from(text.replaceAll('-', ''), 'hex')));
  const stringify = (bytes) =>
    Buffer.from(bytes)
      .toString('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
  const named = (version, hash) => (name, namespace) => {
    const space = typeof namespace === 'string' ? parse(namespace) : namespace;
    const data = Buffer.concat([
      Buffer.from(space),
      typeof name === 'string' ? Buffer.from(name) : Buffer.from(name),
    ]);
    const bytes = new Uint8Array(host('hash', hash, plain(data))).slice(0, 16);
    bytes[6] = (bytes[6] & 0x0f) | (version << 4);
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    return stringify(bytes);
  };
  const spaces = { DNS: '6ba7b810-9dad-11d1-80b4-00c04fd430c8', URL: '6ba7b811-9dad-11d1-80b4-00c04fd430c8' };
  const v3 = Object.assign(named(3, 'md5'), spaces);
  const v5 = Object.assign(named(5, 'sha1'), spaces);
  module.exports = Object.assign(() => v4(), {
    v3,
    v4,
    v5,
    NIL,
    parse,
    stringify,
    validate: (text) => typeof text === 'string' && (FORM.test(text) || text === NIL),
    version: (text) => Number.parseInt(text[14], 16),
  });
};
