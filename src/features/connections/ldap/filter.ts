// Search filters that contain a user's text.
import { PLACEHOLDER } from '../../../records/ldap.ts';

/**
 * @param template a filter with {@link PLACEHOLDER} where the value goes.
 * @param value untrusted text; it is escaped, so that it is compared and never parsed as filter syntax (RFC 4515 §3).
 */
export function filterFor(template: string, value: string): string {
  const escaped = value.replace(
    /[\\*()\0]/g,
    (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  return template.replaceAll(PLACEHOLDER, () => escaped);
}
