// How messages name a user (SAML Core §2.2.3).
import { type Markup, xml } from './xml.ts';

/** How an assertion names its user. */
export interface NameId {
  value: string;
  format: string;
  spNameQualifier?: string;
}

/** The NameID element of assertions and logout requests. */
export function nameIdMarkup({ value, format, spNameQualifier }: NameId): Markup {
  return xml('saml:NameID', { Format: format, SPNameQualifier: spNameQualifier }, value);
}
