// Building blocks of the quickstart programs.

export interface QuickstartValues {
  /** Host and port of this server, which SDKs call the domain. */
  domain: string;
  /** The issuer, with its final slash. */
  issuer: string;
  clientId: string;
  /** The first callback, or a placeholder. */
  callback: string;
  /** Where users return to after logout. */
  afterLogout: string;
  /** An API that the application may get tokens for; undefined when there is none. */
  audience: string | undefined;
}

export interface Snippet {
  /** What the program is for: a framework or a package. */
  title: string;
  /** The npm package that it uses; undefined when it needs none. */
  package: string | undefined;
  /** The command that installs what it needs; undefined when it needs nothing. */
  install: string | undefined;
  language: 'js' | 'jsx' | 'ts' | 'sh' | 'python' | 'go' | 'java';
  code: string;
}

/** Quotes a text for JavaScript and Python, so that no name can end the string literal or the comment that contains it. */
export function quoted(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inside.replace(/[\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}'`;
}

/** The same for Go, Java and YAML, which have the escapes of JSON. */
export const doubleQuoted = (text: string): string => JSON.stringify(text);

/** Returns the program line that names the API; empty when there is none. */
export const audienceLine = ({ audience }: QuickstartValues, indent: string): string =>
  audience === undefined ? '' : `\n${indent}audience: ${quoted(audience)},`;

/** @param more further packages to install. */
export function js(name: string, code: string, more: readonly string[] = []): Snippet {
  const install = `npm install ${[name, ...more].join(' ')}`;
  return { title: name, package: name, install, language: 'js', code };
}

/** Returns the address of the application itself, without a path. */
export const originOf = ({ callback }: QuickstartValues): string => URL.parse(callback)?.origin ?? callback;

/** Returns the path of the callback. */
export const pathOf = ({ callback }: QuickstartValues): string => URL.parse(callback)?.pathname ?? '/';

/** Returns the port at which the application listens. */
export function portOf(callback: string): number {
  const url = URL.parse(callback);
  if (url === null) return 80;
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}
