// What the programs of quickstarts are made of.

/** What is put into a program. */
export interface QuickstartValues {
  /** Host, and port where there is one: what SDKs call the domain. */
  domain: string;
  /** The issuer, with the slash at its end. */
  issuer: string;
  clientId: string;
  /** The first callback, or one to be entered. */
  callback: string;
  /** Where users are after they have logged out. */
  afterLogout: string;
  /** An API that the application may ask for tokens of; undefined where it may for none. */
  audience: string | undefined;
}

/** A program of a quickstart. */
export interface Snippet {
  /** The package that it is for, as it is installed; undefined for one that needs none. */
  package: string | undefined;
  language: 'js' | 'jsx' | 'sh';
  code: string;
}

/** A text as JavaScript has it: nothing in a name ends the text, or the comment that it stands in. */
export function quoted(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${inside.replace(/[\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}'`;
}

/** The line of an API among the options of a program; empty where there is none. */
export const audienceLine = ({ audience }: QuickstartValues, indent: string): string =>
  audience === undefined ? '' : `\n${indent}audience: ${quoted(audience)},`;

/** A program in JavaScript for a package. */
export const js = (name: string, code: string): Snippet => ({ package: name, language: 'js', code });
