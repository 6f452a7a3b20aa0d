// How messages name a user (SAML Core §2.2.3), and in which formats.
import { CLAIMS } from './names.ts';
import { type Markup, xml } from './xml.ts';

export interface NameId {
  value: string;
  format: string;
  spNameQualifier?: string;
}

export function nameIdMarkup({ value, format, spNameQualifier }: NameId): Markup {
  return xml('saml:NameID', { Format: format, SPNameQualifier: spNameQualifier }, value);
}

/**
 * What the NameID of a user may be made from. Service providers trust it as the user's identity, so nothing here is a
 * value that the user chose.
 */
export interface NameIdSources {
  /** Permanent, and of this user alone. */
  userId: string;
  /** Made for this session. */
  transientId: string;
  /** Verified, unless the application takes unverified addresses. */
  email: string | undefined;
  /**
   * Returns the value of the first attribute that has one.
   * @param usual names of attributes; those that the application names take precedence.
   */
  attribute(usual: readonly string[]): string | undefined;
}

/** A format of NameIDs (Core §8.3). */
export interface NameIdFormat {
  uri: string;
  /** Whether our metadata offers it to service providers. */
  isOffered: boolean;
  /**
   * Whom a NameID of an upstream provider names: `permanent` the same user for ever, `reassignable` perhaps somebody
   * else later, `transient` nobody beyond the session, so that the format is not asked for.
   */
  lasts: 'permanent' | 'reassignable' | 'transient';
  /** Returns the NameID of a user; undefined for a user who has none. */
  valueOf(sources: NameIdSources): string | undefined;
  /** What a user without a NameID lacks, for service providers that request the format. */
  lack?: string;
}

const USUAL_ATTRIBUTES = [`${CLAIMS}nameidentifier`, `${CLAIMS}emailaddress`, `${CLAIMS}name`];

const email: NameIdFormat = {
  uri: 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  isOffered: true,
  lasts: 'reassignable',
  valueOf: ({ attribute, email }) => attribute([]) ?? email,
  lack: 'The user has no verified e-mail address.',
};

const persistent: NameIdFormat = {
  uri: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
  isOffered: true,
  lasts: 'permanent',
  valueOf: ({ attribute, userId }) => attribute(USUAL_ATTRIBUTES) ?? userId,
};

const transient: NameIdFormat = {
  uri: 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient',
  isOffered: true,
  lasts: 'transient',
  valueOf: ({ transientId }) => transientId,
};

/** What a NameID is in if nothing says otherwise (Core §2.2.2). It is not offered, because it promises nothing. */
export const unspecified: NameIdFormat = {
  uri: 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
  isOffered: false,
  lasts: 'reassignable',
  valueOf: persistent.valueOf,
};

/** All formats, in the order of our metadata. */
export const NAME_ID_FORMATS: readonly NameIdFormat[] = [email, persistent, transient, unspecified];

/** Returns the format of a URI; undefined for one that is not built in. */
export const nameIdFormatOf = (uri: string | undefined): NameIdFormat | undefined =>
  NAME_ID_FORMATS.find((format) => format.uri === uri);
