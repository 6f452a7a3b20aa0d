// Names that a custom claim must not have: those of the protocol, and names that clients may read as one of them.

/** The names themselves. */
const OF_THE_PROTOCOL =
  `sub iss aud exp nbf iat jti nonce azp auth_time acr amr act may_act at_hash c_hash s_hash sid scope scp
  client_id cnf typ events gty permissions org_id org_name authorization_details updated_at jwk x5t#S256 vot __proto__
  constructor`
    .split(/\s+/)
    .filter(Boolean);

/** Variants for clients that ignore case, the dot of an `i`, spaces, widths, or invisible characters. */
const LOOK_ALIKES = [
  ...['Sub', 'SCOPE', 'Org_Id', 'X5T#S256', '__PROTO__'],
  ...['sub ', ' aud', '\tiss', 's ub', 'acr\n', 'amr\u00a0'],
  ...['\uff53ub', 'permi\u017f\u017fions', 's\u200bub', '\u202eaud', 'sid\u00ad', 'cnf\ufe0f'],
  ...['\u0131ss', '\u0130ss', 'i\u0307at', 'su\u2800b'],
];

export const PROTOCOL_CLAIMS = [...OF_THE_PROTOCOL, ...LOOK_ALIKES];
