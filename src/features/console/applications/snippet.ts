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
  /** The npm package that it uses; undefined when it needs none. */
  package: string | undefined;
  language: 'js' | 'jsx' | 'sh';
  code: string;
}

/** Quotes a text for JavaScript, so that no name can end the string literal or the comment that contains it. */
export function quoted(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inside.replace(/[\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}'`;
}

/** Returns the program line that names the API; empty when there is none. */
export const audienceLine = ({ audience }: QuickstartValues, indent: string): string =>
  audience === undefined ? '' : `\n${indent}audience: ${quoted(audience)},`;

export const js = (name: string, code: string): Snippet => ({ package: name, language: 'js', code });
