// Search filters with the text of somebody in them.
import { PLACEHOLDER } from '../../records/ldap.ts';

/**
 * A filter for a value.
 * @param template with {@link PLACEHOLDER} where the value goes.
 * @param value anybody's text: escaped, it is compared and never read as a part of the filter (RFC 4515 §3).
 */
export function filterFor(template: string, value: string): string {
  const escaped = value.replace(
    /[\\*()\0]/g,
    (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return template.replaceAll(PLACEHOLDER, () => escaped);
}
