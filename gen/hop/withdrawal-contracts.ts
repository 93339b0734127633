// Written by packaging/sdk-config.js from @hop-protocol/sdk. Do not edit.

/** Contracts of a chain, lower case. */
export interface WithdrawalContracts {
  readonly slug: string;
  /** Hop's bridges by token symbol. */
  readonly bridges: Readonly<Record<string, string>>;
  /** Hop's contract that burns USDC for CCTP. */
  readonly cctpBridge?: string;
  /** Circle's MessageTransmitter. */
  readonly messageTransmitter?: string;
}

/** The contracts that pay withdrawals, by chain ID. */
export const withdrawalContracts: Readonly<Record<number, WithdrawalContracts>> = {
  "1": {
    "slug": "ethereum",
    "bridges": {
      "USDC.e": "0x3666f603cc164936c1b87e207f36beba4ac5f18a",
      "USDT": "0x3e4a3a4796d16c0cd582c382691998f7c06420b6",
      "MATIC": "0x22b1cbb8d98a01a3b71d034bb899775a76eb1cc2",
      "DAI": "0x3d4cc8a61c7528fd86c55cfe061a78dcba48edd1",
      "ETH": "0xb8901acb165ed027e32754e0ffe830802919727f",
      "HOP": "0x914f986a44acb623a277d6bd17368171fcbe4273",
      "SNX": "0x893246facf345c99e4235e5a7bbee7404c988b96",
      "sUSD": "0x36443fc70e073fe9d50425f82a3ee19fef697d62",
      "rETH": "0x87269b23e73305117d0404557badc459ced0dbec",
      "MAGIC": "0xf074540eb83c86211f305e145eb31743e228e57d"
    },
    "cctpBridge": "0x7e77461ca2a9d82d26fd5e0da2243bf72ea45747",
    "messageTransmitter": "0x0a992d191deec32afe36203ad87d7d289a738f81"
  },
  "5": {
    "slug": "ethereum",
    "bridges": {
      "ETH": "0xc8a4fb931e8d77df8497790381ca7d228e68a41b"
    }
  },
  "10": {
    "slug": "optimism",
    "bridges": {
      "USDC.e": "0xa81d244a1814468c734e5b4101f7b9c0c577a8fc",
      "USDT": "0x46ae9bab8cea96610807a275ebd36f8e916b5c61",
      "DAI": "0x7191061d5d4c60f598214cc6913502184baddf18",
      "ETH": "0x83f6244bd87662118d96d9a6d44f09dfff14b30e",
      "HOP": "0x03d7f750777ec48d39d080b020d83eb2cb4e3547",
      "SNX": "0x16284c7323c35f4960540583998c98b1cfc581a7",
      "sUSD": "0x33fe5bb8da466da55a8a32d6ade2bb104e2c5201",
      "rETH": "0xa0075e8ce43dcb9970cb7709b9526c1232cc39c2"
    },
    "cctpBridge": "0x469147af8bde580232be9dc84bb4ec84d348de24",
    "messageTransmitter": "0x4d41f22c5a0e5c74090899e5a8fb597a8842b3e8"
  },
  "100": {
    "slug": "gnosis",
    "bridges": {
      "USDC.e": "0x25d8039bb044dc227f741a9e381ca4ceae2e6ae8",
      "USDT": "0xfd5a186a7e8453eb867a360526c5d987a00acac2",
      "MATIC": "0x7ac71c29fedf94bac5a5c9ab76e1dd12ea885ccc",
      "DAI": "0x0460352b91d7cf42b0e1c1c30f06b602d9ef2238",
      "ETH": "0xd8926c12c0b2e5cd40cfda49ecaff40252af491b",
      "HOP": "0x6f03052743cd99ce1b29265e377e320cd24eb632"
    }
  },
  "137": {
    "slug": "polygon",
    "bridges": {
      "USDC.e": "0x25d8039bb044dc227f741a9e381ca4ceae2e6ae8",
      "USDT": "0x6c9a1acf73bd85463a46b0afc076fbdf602b690b",
      "MATIC": "0x553bc791d746767166fa3888432038193ceed5e2",
      "DAI": "0xecf268be00308980b5b3fcd0975d47c4c8e1382a",
      "ETH": "0xb98454270065a31d71bf635f6f7ee6a518dfb849",
      "HOP": "0x58c61aee5ed3d748a1467085ed2650b697a66234"
    },
    "cctpBridge": "0x1cd391bd1d915d189de162f0f1963c07e60e4cd6",
    "messageTransmitter": "0xf3be9355363857f3e001be68856a2f96b4c39ba9"
  },
  "420": {
    "slug": "optimism",
    "bridges": {
      "ETH": "0x2708e5c7087d4c6d295c8b58b2d452c360d505c7"
    }
  },
  "1101": {
    "slug": "polygonzk",
    "bridges": {
      "ETH": "0x0ce6c85cf43553de10fc56ceca0aef6ff0dd444d",
      "HOP": "0x9ec9551d4a1a1593b0ee8124d98590cc71b3b09d"
    }
  },
  "1442": {
    "slug": "polygonzk",
    "bridges": {
      "ETH": "0x172cabe34c757472249ad4bd97560373fbbf0da3"
    }
  },
  "8453": {
    "slug": "base",
    "bridges": {
      "USDC.e": "0x46ae9bab8cea96610807a275ebd36f8e916b5c61",
      "ETH": "0x3666f603cc164936c1b87e207f36beba4ac5f18a",
      "HOP": "0xe22d2bedb3eca35e6397e0c6d62857094aa26f52"
    },
    "cctpBridge": "0xe7f40bf16ab09f4a6906ac2caa4094ad2da48cc2",
    "messageTransmitter": "0xad09780d193884d503182ad4588450c416d6f9d4"
  },
  "42161": {
    "slug": "arbitrum",
    "bridges": {
      "USDC.e": "0x0e0e3d2c5c292161999474247956ef542cabf8dd",
      "USDT": "0x72209fe68386b37a40d6bca04f78356fd342491f",
      "DAI": "0x7ac115536fe3a185100b2c4de4cb328bf3a58ba6",
      "ETH": "0x3749c4f034022c39ecaffaba182555d4508caccc",
      "HOP": "0x25fb92e505f752f730cad0bd4fa17ece4a384266",
      "rETH": "0xc315239cfb05f1e130e7e28e603cea4c014c57f0",
      "MAGIC": "0xea5abf2c909169823d939de377ef2bf897a6ce98"
    },
    "cctpBridge": "0x6504bfcab789c35325ca4329f1f41fac340bf982",
    "messageTransmitter": "0xc30362313fbba5cf9163f0bb16a0e01f01a896ca"
  },
  "42170": {
    "slug": "nova",
    "bridges": {
      "ETH": "0x8796860ca1677bf5d54ce5a348fe4b779a8212f3",
      "HOP": "0x02d47f76523d2f059b617e4346de67482792eb83",
      "MAGIC": "0xe638433e2c1df5f7a3a21b0a6b5c4b37278e55dc"
    }
  },
  "59140": {
    "slug": "linea",
    "bridges": {
      "ETH": "0x893246facf345c99e4235e5a7bbee7404c988b96"
    }
  },
  "59144": {
    "slug": "linea",
    "bridges": {
      "ETH": "0xcbb852a6274e03fa00fb4895de0463f66df27a11",
      "HOP": "0x0a6b1904369fe59e002ad0713ae89d4e3df5a7cf"
    }
  },
  "84531": {
    "slug": "base",
    "bridges": {
      "ETH": "0xcb4ceefce514b2d910d3ac529076d18e3add3775"
    }
  },
  "421613": {
    "slug": "arbitrum",
    "bridges": {
      "ETH": "0xb276bc046dff5024d20a3947475ea20c9f08eb1f"
    }
  }
};
