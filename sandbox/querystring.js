// querystring, as in Node.
(module) => {
  const escaped = (value) => encodeURIComponent(String(value));
  const unescaped = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const textOf = (value) =>
    ['string', 'number', 'bigint', 'boolean'].includes(typeof value) ? String(value) : '';
  const stringify = (object, separator = '&', equals = '=') =>
    Object.entries(object ?? {})
      .flatMap(([key, value]) =>
        (Array.isArray(value) ? value : [value]).map(
          (one) => `${escaped(key)}${equals}${escaped(textOf(one))}`,
        ),
      )
      .join(separator);
  const parse = (text, separator = '&', equals = '=') => {
    const made = Object.create(null);
    for (const part of String(text).split(separator)) {
      if (part === '') continue;
      const at = part.indexOf(equals);
      const [key, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + equals.length)];
      const name = unescaped(key.replaceAll('+', ' '));
      const plain = unescaped(value.replaceAll('+', ' '));
      made[name] = name in made ? [].concat(made[name], plain) : plain;
    }
    return made;
  };
  module.exports = {
    stringify,
    encode: stringify,
    parse,
    decode: parse,
    escape: escaped,
    unescape: unescaped,
  };
};
