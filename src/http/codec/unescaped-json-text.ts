/** Texts that stand in JSON as they are. */
export const UNESCAPED_JSON_TEXT = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
