// How messages name a user (SAML Core §2.2.3).
import { type Markup, xml } from './xml.ts';

/** The NameID of a user. */
export interface NameId {
  value: string;
  format: string;
  spNameQualifier?: string;
}

/** Returns the NameID element for assertions and logout requests. */
export function nameIdMarkup({ value, format, spNameQualifier }: NameId): Markup {
  return xml('saml:NameID', { Format: format, SPNameQualifier: spNameQualifier }, value);
}
