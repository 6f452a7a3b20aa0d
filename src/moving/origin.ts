// The origin under which users will see this server.
import type { Item } from './verdicts/verdict.ts';

/** Stands for the origin where nothing says it. */
const EXAMPLE = 'https://login.example.com';

/**
 * Returns the origin after the move, without a slash at the end.
 * @param given by the caller, such as `BASE_URL`; without one it is the custom domain of the export, which stays.
 */
export function originAfter(
  given: string | undefined,
  sections: Readonly<Record<string, unknown>>,
): { origin: string; isExample: boolean } {
  const url = given === undefined ? null : URL.parse(given);
  if (url !== null) return { origin: url.origin, isExample: false };
  const { customDomains } = sections;
  const [first] = Array.isArray(customDomains) ? (customDomains as Item[]) : [];
  const domain = first?.domain;
  const own = typeof domain === 'string' ? URL.parse(`https://${domain}`) : null;
  return own === null ? { origin: EXAMPLE, isExample: true } : { origin: own.origin, isExample: false };
}

export const hostOf = (origin: string): string => origin.replace(/^https?:\/\//, '');
