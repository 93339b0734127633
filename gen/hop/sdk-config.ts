// Written by packaging/sdk-config.js from @hop-protocol/sdk. Do not edit.

/** A chain, as the SDK describes it. */
export interface SdkChain {
  readonly slug: string;
  readonly chainId: string;
  readonly isL1: boolean;
  readonly nativeTokenSymbol: string;
  readonly publicRpcUrl: string;
  readonly fallbackPublicRpcUrls?: readonly string[];
  readonly multicall?: string;
}

export interface SdkNetwork {
  readonly chains: readonly SdkChain[];
  /** Contracts by token symbol, chain slug and name. */
  readonly addresses: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string | number>>>>>>;
  /** The built-in fee settings. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The SDK's configuration by network. */
export const sdkConfig: Readonly<Record<"mainnet" | "goerli", SdkNetwork>> = {
  "mainnet": {
    "chains": [
      {
        "slug": "ethereum",
        "chainId": "1",
        "isL1": true,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://1rpc.io/eth",
        "fallbackPublicRpcUrls": [
          "https://rpc.ankr.com/eth",
          "https://mainnet.infura.io/v3/84842078b09946638c03157f83405213"
        ],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "arbitrum",
        "chainId": "42161",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://arb1.arbitrum.io/rpc",
        "fallbackPublicRpcUrls": [
          "https://rpc.ankr.com/arbitrum",
          "https://arbitrum-mainnet.infura.io/v3/84842078b09946638c03157f83405213"
        ],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "optimism",
        "chainId": "10",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://1rpc.io/op",
        "fallbackPublicRpcUrls": [
          "https://rpc.ankr.com/optimism",
          "https://optimism-mainnet.infura.io/v3/84842078b09946638c03157f83405213",
          "https://mainnet.optimism.io"
        ],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "gnosis",
        "chainId": "100",
        "isL1": false,
        "nativeTokenSymbol": "XDAI",
        "publicRpcUrl": "https://rpc.gnosis.gateway.fm",
        "fallbackPublicRpcUrls": [
          "https://rpc.ankr.com/gnosis",
          "https://rpc.gnosischain.com"
        ],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "polygon",
        "chainId": "137",
        "isL1": false,
        "nativeTokenSymbol": "MATIC",
        "publicRpcUrl": "https://polygon-rpc.com",
        "fallbackPublicRpcUrls": [
          "https://rpc.ankr.com/polygon"
        ],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "nova",
        "chainId": "42170",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://nova.arbitrum.io/rpc",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "base",
        "chainId": "8453",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://mainnet.base.org",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xca11bde05977b3631167028862be2a173976ca11"
      },
      {
        "slug": "linea",
        "chainId": "59144",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://rpc.linea.build",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "polygonzk",
        "chainId": "1101",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://zkevm-rpc.com",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      }
    ],
    "addresses": {
      "USDC": {
        "ethereum": {
          "l1CanonicalToken": "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
          "cctpL1Bridge": "0x7e77461CA2a9d82d26FD5e0Da2243BF72eA45747",
          "cctpMessageTransmitter": "0x0a992d191deec32afe36203ad87d7d289a738f81",
          "cctpBridgeDeployedBlockNumber": 19466442
        },
        "polygon": {
          "l2CanonicalToken": "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359",
          "l1FxBaseRootTunnel": "0x1e1607db33D38715544E595A5D8f94557C487DfA",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x40ec5B33f54e0E8A33A975908C5BA1c14e5BbbDf",
          "l2MessengerProxy": "0xf8024972590cad31C47C41371ff5c98956311747",
          "cctpL2Bridge": "0x1CD391bd1D915D189dE162F0F1963C07E60E4CD6",
          "cctpMessageTransmitter": "0xF3be9355363857F3e001be68856A2f96b4C39Ba9",
          "cctpBridgeDeployedBlockNumber": 54817111
        },
        "optimism": {
          "l2CanonicalToken": "0x0b2c639c533813f4aa9d7837caf62653d097ff85",
          "cctpL2Bridge": "0x469147af8Bde580232BE9DC84Bb4EC84d348De24",
          "cctpMessageTransmitter": "0x4d41f22c5a0e5c74090899e5a8fb597a8842b3e8",
          "cctpBridgeDeployedBlockNumber": 117599491
        },
        "arbitrum": {
          "l2CanonicalToken": "0xaf88d065e77c8cc2239327c5edb3a432268e5831",
          "cctpL2Bridge": "0x6504BFcaB789c35325cA4329f1f41FaC340bf982",
          "cctpMessageTransmitter": "0xC30362313FBBA5cf9163F0bb16a0e01f01A896ca",
          "cctpBridgeDeployedBlockNumber": 191777196
        },
        "base": {
          "l2CanonicalToken": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
          "cctpL2Bridge": "0xe7F40BF16AB09f4a6906Ac2CAA4094aD2dA48Cc2",
          "cctpMessageTransmitter": "0xAD09780d193884d503182aD4588450C416D6F9D4",
          "cctpBridgeDeployedBlockNumber": 12004192
        }
      },
      "USDC.e": {
        "ethereum": {
          "l1CanonicalToken": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
          "l1Bridge": "0x3666f603Cc164936C1b87e207F36BEBa4AC5f18a",
          "cctpL1Bridge": "0x7e77461CA2a9d82d26FD5e0Da2243BF72eA45747",
          "cctpMessageTransmitter": "0x0a992d191deec32afe36203ad87d7d289a738f81",
          "bridgeDeployedBlockNumber": 12650032,
          "cctpBridgeDeployedBlockNumber": 19466442
        },
        "gnosis": {
          "l1CanonicalBridge": "0x88ad09518695c6c3712AC10a214bE5109a655671",
          "l1MessengerWrapper": "0xd0BF9465E71A9011Ac5b12a4A8CAfAc491283874",
          "l2CanonicalBridge": "0xf6A78083ca3e2a662D6dd1703c939c8aCE2e268d",
          "l2CanonicalToken": "0xDDAfbb505ad214D7b80b1f830fcCc89B60fb7A83",
          "l2Bridge": "0x25D8039bB044dC227f741a9e381CA4cEAE2E6aE8",
          "l2HopBridgeToken": "0x9ec9551d4A1a1593b0ee8124D98590CC71b3B09D",
          "l2AmmWrapper": "0x76b22b8C1079A44F1211D867D68b1eda76a635A7",
          "l2SaddleSwap": "0x5C32143C8B198F392d01f8446b754c181224ac26",
          "l2SaddleLpToken": "0x9D373d22FD091d7f9A6649EB067557cc12Fb1A0A",
          "l1Amb": "0x4C36d2919e407f0Cc2Ee3c993ccF8ac26d9CE64e",
          "l2Amb": "0x75Df5AF045d91108662D8080fD1FEFAd6aA0bb59",
          "bridgeDeployedBlockNumber": 16617211
        },
        "polygon": {
          "l1CanonicalBridge": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1MessengerWrapper": "0x1e1607db33D38715544E595A5D8f94557C487DfA",
          "l2CanonicalBridge": "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174",
          "l2CanonicalToken": "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174",
          "l2Bridge": "0x25D8039bB044dC227f741a9e381CA4cEAE2E6aE8",
          "cctpL2Bridge": "0x1CD391bd1D915D189dE162F0F1963C07E60E4CD6",
          "cctpMessageTransmitter": "0xF3be9355363857F3e001be68856A2f96b4C39Ba9",
          "l2HopBridgeToken": "0x9ec9551d4A1a1593b0ee8124D98590CC71b3B09D",
          "l2AmmWrapper": "0x76b22b8C1079A44F1211D867D68b1eda76a635A7",
          "l2SaddleSwap": "0x5C32143C8B198F392d01f8446b754c181224ac26",
          "l2SaddleLpToken": "0x9D373d22FD091d7f9A6649EB067557cc12Fb1A0A",
          "l1FxBaseRootTunnel": "0x1e1607db33D38715544E595A5D8f94557C487DfA",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x40ec5B33f54e0E8A33A975908C5BA1c14e5BbbDf",
          "l2MessengerProxy": "0xf8024972590cad31C47C41371ff5c98956311747",
          "bridgeDeployedBlockNumber": 15810014,
          "cctpBridgeDeployedBlockNumber": 54817111
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x6587a6164B091a058aCba2e91f971454Ec172940",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x7F5c764cBc14f9669B88837ca1490cCa17c31607",
          "l2Bridge": "0xa81D244A1814468C734E5b4101F7b9c0c577a8fC",
          "cctpL2Bridge": "0x469147af8Bde580232BE9DC84Bb4EC84d348De24",
          "cctpMessageTransmitter": "0x4d41f22c5a0e5c74090899e5a8fb597a8842b3e8",
          "l2HopBridgeToken": "0x25D8039bB044dC227f741a9e381CA4cEAE2E6aE8",
          "l2AmmWrapper": "0x2ad09850b0CA4c7c1B33f5AcD6cBAbCaB5d6e796",
          "l2SaddleSwap": "0x3c0FFAca566fCcfD9Cc95139FEF6CBA143795963",
          "l2SaddleLpToken": "0x2e17b8193566345a2Dd467183526dEdc42d2d5A8",
          "bridgeDeployedBlockNumber": 1,
          "cctpBridgeDeployedBlockNumber": 117599491
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x39Bf4A32E689B6a79360854b7c901e991085D6a3",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8",
          "l2Bridge": "0x0e0E3d2C5c292161999474247956EF542caBF8dd",
          "cctpL2Bridge": "0x6504BFcaB789c35325cA4329f1f41FaC340bf982",
          "cctpMessageTransmitter": "0xC30362313FBBA5cf9163F0bb16a0e01f01A896ca",
          "l2HopBridgeToken": "0x0ce6c85cF43553DE10FC56cecA0aef6Ff0DD444d",
          "l2AmmWrapper": "0xe22D2beDb3Eca35E6397e0C6D62857094aA26F52",
          "l2SaddleSwap": "0x10541b07d8Ad2647Dc6cD67abd4c03575dade261",
          "l2SaddleLpToken": "0xB67c014FA700E69681a673876eb8BAFAA36BFf71",
          "bridgeDeployedBlockNumber": 440027,
          "cctpBridgeDeployedBlockNumber": 191777196
        },
        "base": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x4a55e8e407609A3046804ca500BeF6F5ebaCb6F9",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA",
          "l2Bridge": "0x46ae9BaB8CEA96610807a275EBD36f8e916b5C61",
          "cctpL2Bridge": "0xe7F40BF16AB09f4a6906Ac2CAA4094aD2dA48Cc2",
          "cctpMessageTransmitter": "0xAD09780d193884d503182aD4588450C416D6F9D4",
          "l2HopBridgeToken": "0x74fa978EaFFa312bC92e76dF40FcC1bFE7637Aeb",
          "l2AmmWrapper": "0x7D269D3E0d61A05a0bA976b7DBF8805bF844AF3F",
          "l2SaddleSwap": "0x022C5cE6F1Add7423268D41e08Df521D5527C2A0",
          "l2SaddleLpToken": "0x3b507422EBe64440f03BCbE5EEe4bdF76517f320",
          "bridgeDeployedBlockNumber": 2077758,
          "cctpBridgeDeployedBlockNumber": 12004192
        }
      },
      "USDT": {
        "ethereum": {
          "l1CanonicalToken": "0xdAC17F958D2ee523a2206206994597C13D831ec7",
          "l1Bridge": "0x3E4a3a4796d16c0Cd582C382691998f7c06420B6",
          "bridgeDeployedBlockNumber": 12860139
        },
        "gnosis": {
          "l1CanonicalBridge": "0x88ad09518695c6c3712AC10a214bE5109a655671",
          "l1MessengerWrapper": "0x8796860ca1677Bf5d54cE5A348Fe4b779a8212f3",
          "l2CanonicalBridge": "0xf6A78083ca3e2a662D6dd1703c939c8aCE2e268d",
          "l2CanonicalToken": "0x4ECaBa5870353805a9F068101A40E0f32ed605C6",
          "l2Bridge": "0xFD5a186A7e8453Eb867A360526c5d987A00ACaC2",
          "l2HopBridgeToken": "0x91f8490eC27cbB1b2FaEdd29c2eC23011d7355FB",
          "l2AmmWrapper": "0x49094a1B3463c4e2E82ca41b8e6A023bdd6E222f",
          "l2SaddleSwap": "0x3Aa637D6853f1d9A9354FE4301Ab852A88b237e7",
          "l2SaddleLpToken": "0x5b10222f2Ada260AAf6C6fC274bd5810AF9d33c0",
          "l1Amb": "0x4C36d2919e407f0Cc2Ee3c993ccF8ac26d9CE64e",
          "l2Amb": "0x75Df5AF045d91108662D8080fD1FEFAd6aA0bb59",
          "bridgeDeployedBlockNumber": 17155195
        },
        "polygon": {
          "l1CanonicalBridge": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1MessengerWrapper": "0x1CD391bd1D915D189dE162F0F1963C07E60E4CD6",
          "l2CanonicalBridge": "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
          "l2CanonicalToken": "0xc2132D05D31c914a87C6611C10748AEb04B58e8F",
          "l2Bridge": "0x6c9a1ACF73bd85463A46B0AFc076FBdf602b690B",
          "l2HopBridgeToken": "0x9F93ACA246F457916E49Ec923B8ed099e313f763",
          "l2AmmWrapper": "0x8741Ba6225A6BF91f9D73531A98A89807857a2B3",
          "l2SaddleSwap": "0xB2f7d27B21a69a033f85C42d5EB079043BAadC81",
          "l2SaddleLpToken": "0x3cA3218D6c52B640B0857cc19b69Aa9427BC842C",
          "l1FxBaseRootTunnel": "0x1CD391bd1D915D189dE162F0F1963C07E60E4CD6",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x40ec5B33f54e0E8A33A975908C5BA1c14e5BbbDf",
          "l2MessengerProxy": "0x73C657d54E8512E59c691eA38a3Fa17a5e838c4c",
          "bridgeDeployedBlockNumber": 17058878
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x9fc22E269c3752620EB281ce470855886b982501",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58",
          "l2Bridge": "0x46ae9BaB8CEA96610807a275EBD36f8e916b5C61",
          "l2HopBridgeToken": "0x2057C8ECB70Afd7Bee667d76B4CD373A325b1a20",
          "l2AmmWrapper": "0x7D269D3E0d61A05a0bA976b7DBF8805bF844AF3F",
          "l2SaddleSwap": "0xeC4B41Af04cF917b54AEb6Df58c0f8D78895b5Ef",
          "l2SaddleLpToken": "0xF753A50fc755c6622BBCAa0f59F0522f264F006e",
          "bridgeDeployedBlockNumber": 1
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x967F8E2B66D624Ad544CB59a230b867Ac3dC60dc",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
          "l2Bridge": "0x72209Fe68386b37A40d6bCA04f78356fd342491f",
          "l2HopBridgeToken": "0x12e59C59D282D2C00f3166915BED6DC2F5e2B5C7",
          "l2AmmWrapper": "0xCB0a4177E0A60247C0ad18Be87f8eDfF6DD30283",
          "l2SaddleSwap": "0x18f7402B673Ba6Fb5EA4B95768aABb8aaD7ef18a",
          "l2SaddleLpToken": "0xCe3B19D820CB8B9ae370E423B0a329c4314335fE",
          "bridgeDeployedBlockNumber": 441562
        }
      },
      "MATIC": {
        "ethereum": {
          "l1CanonicalToken": "0x7D1AfA7B718fb893dB30A3aBc0Cfc608AaCfeBB0",
          "l1Bridge": "0x22B1Cbb8D98a01a3B71D034BB899775A76Eb1cc2",
          "bridgeDeployedBlockNumber": 12969385
        },
        "gnosis": {
          "l1CanonicalBridge": "0x88ad09518695c6c3712AC10a214bE5109a655671",
          "l1MessengerWrapper": "0xCC0ACeb13a902d0BfBa37AD5d876320C7B590099",
          "l2CanonicalBridge": "0xf6A78083ca3e2a662D6dd1703c939c8aCE2e268d",
          "l2CanonicalToken": "0x7122d7661c4564b7C6Cd4878B06766489a6028A2",
          "l2Bridge": "0x7ac71c29fEdF94BAc5A5C9aB76E1Dd12Ea885CCC",
          "l2HopBridgeToken": "0xE38faf9040c7F09958c638bBDB977083722c5156",
          "l2AmmWrapper": "0x86cA30bEF97fB651b8d866D45503684b90cb3312",
          "l2SaddleSwap": "0xaa30D6bba6285d0585722e2440Ff89E23EF68864",
          "l2SaddleLpToken": "0x5C2048094bAaDe483D0b1DA85c3Da6200A88a849",
          "l1Amb": "0x4C36d2919e407f0Cc2Ee3c993ccF8ac26d9CE64e",
          "l2Amb": "0x75Df5AF045d91108662D8080fD1FEFAd6aA0bb59",
          "bridgeDeployedBlockNumber": 17444924
        },
        "polygon": {
          "l1CanonicalBridge": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1MessengerWrapper": "0x29d591fF46194cE3B0B813CE7940569Fa06bE7fa",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000001010",
          "l2CanonicalToken": "0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270",
          "l2Bridge": "0x553bC791D746767166fA3888432038193cEED5E2",
          "l2HopBridgeToken": "0x712F0cf37Bdb8299D0666727F73a5cAbA7c1c24c",
          "l2AmmWrapper": "0x884d1Aa15F9957E1aEAA86a82a72e49Bc2bfCbe3",
          "l2SaddleSwap": "0x3d4Cc8A61c7528Fd86C55cfe061a78dCBA48EDd1",
          "l2SaddleLpToken": "0xbc4FB4ED825C65fF48163AF7E59d49e32edb5269",
          "l1FxBaseRootTunnel": "0x29d591fF46194cE3B0B813CE7940569Fa06bE7fa",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x40ec5B33f54e0E8A33A975908C5BA1c14e5BbbDf",
          "l2MessengerProxy": "0xc01052c380c7D4D6df84eB81A5b93a0c4F676286",
          "bridgeDeployedBlockNumber": 17669097
        }
      },
      "DAI": {
        "ethereum": {
          "l1CanonicalToken": "0x6B175474E89094C44Da98b954EedeAC495271d0F",
          "l1Bridge": "0x3d4Cc8A61c7528Fd86C55cfe061a78dCBA48EDd1",
          "bridgeDeployedBlockNumber": 13226217
        },
        "gnosis": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xC3d56808907F6A45042c7e81A8a7Db72C5F7F9F6",
          "l2CanonicalBridge": "0xf6A78083ca3e2a662D6dd1703c939c8aCE2e268d",
          "l2CanonicalToken": "0xe91D153E0b41518A2Ce8Dd3D7944Fa863463a97d",
          "l2Bridge": "0x0460352b91D7CF42B0E1C1c30f06B602D9ef2238",
          "l2HopBridgeToken": "0xB1ea9FeD58a317F81eEEFC18715Dd323FDEf45c4",
          "l2AmmWrapper": "0x6C928f435d1F3329bABb42d69CCF043e3900EcF1",
          "l2SaddleSwap": "0x24afDcA4653042C6D08fb1A754b2535dAcF6Eb24",
          "l2SaddleLpToken": "0x5300648b1cFaa951bbC1d56a4457083D92CFa33F",
          "l1Amb": "0x4C36d2919e407f0Cc2Ee3c993ccF8ac26d9CE64e",
          "l2Amb": "0x75Df5AF045d91108662D8080fD1FEFAd6aA0bb59",
          "bridgeDeployedBlockNumber": 18093617
        },
        "polygon": {
          "l1CanonicalBridge": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1MessengerWrapper": "0x172cAbe34c757472249aD4Bd97560373fBbf0DA3",
          "l2CanonicalBridge": "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063",
          "l2CanonicalToken": "0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063",
          "l2Bridge": "0xEcf268Be00308980B5b3fcd0975D47C4C8e1382a",
          "l2HopBridgeToken": "0xb8901acB165ed027E32754E0FFe830802919727f",
          "l2AmmWrapper": "0x28529fec439cfF6d7D1D5917e956dEE62Cd3BE5c",
          "l2SaddleSwap": "0x25FB92E505F752F730cAD0Bd4fa17ecE4A384266",
          "l2SaddleLpToken": "0x8b7aA8f5cc9996216A88D900df8B8a0a3905939A",
          "l1FxBaseRootTunnel": "0x172cAbe34c757472249aD4Bd97560373fBbf0DA3",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x40ec5B33f54e0E8A33A975908C5BA1c14e5BbbDf",
          "l2MessengerProxy": "0x60013Ae36DdD3aF49b2bdB7Fb1545c5C1CF21638",
          "bridgeDeployedBlockNumber": 19112518
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x115F423b958A2847af0F5bF314DB0f27c644c308",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1",
          "l2Bridge": "0x7191061D5d4C60f598214cC6913502184BAddf18",
          "l2HopBridgeToken": "0x56900d66D74Cb14E3c86895789901C9135c95b16",
          "l2AmmWrapper": "0xb3C68a491608952Cb1257FC9909a537a0173b63B",
          "l2SaddleSwap": "0xF181eD90D6CfaC84B8073FdEA6D34Aa744B41810",
          "l2SaddleLpToken": "0x22D63A26c730d49e5Eab461E4f5De1D8BdF89C92",
          "bridgeDeployedBlockNumber": 1
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x2d6fd82C7f531328BCaCA96EF985325C0894dB62",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1",
          "l2Bridge": "0x7aC115536FE3A185100B2c4DE4cb328bf3A58Ba6",
          "l2HopBridgeToken": "0x46ae9BaB8CEA96610807a275EBD36f8e916b5C61",
          "l2AmmWrapper": "0xe7F40BF16AB09f4a6906Ac2CAA4094aD2dA48Cc2",
          "l2SaddleSwap": "0xa5A33aB9063395A90CCbEa2D86a62EcCf27B5742",
          "l2SaddleLpToken": "0x68f5d998F00bB2460511021741D098c05721d8fF",
          "bridgeDeployedBlockNumber": 945326
        }
      },
      "ETH": {
        "ethereum": {
          "l1CanonicalToken": "0x0000000000000000000000000000000000000000",
          "l1Bridge": "0xb8901acB165ed027E32754E0FFe830802919727f",
          "bridgeDeployedBlockNumber": 13331564
        },
        "gnosis": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x80466247E0e3d56F95A0910E52c82c374F7D65cd",
          "l2CanonicalBridge": "0xf6A78083ca3e2a662D6dd1703c939c8aCE2e268d",
          "l2CanonicalToken": "0x6A023CCd1ff6F2045C3309768eAd9E68F978f6e1",
          "l2Bridge": "0xD8926c12C0B2E5Cd40cFdA49eCaFf40252Af491B",
          "l2HopBridgeToken": "0xc46F2004006d4C770346f60a7BaA3f1Cc67dFD1c",
          "l2AmmWrapper": "0x03D7f750777eC48d39D080b020D83Eb2CB4e3547",
          "l2SaddleSwap": "0x4014DC015641c08788F15bD6eB20dA4c47D936d8",
          "l2SaddleLpToken": "0xb9cca4Ed3f082a459c0851058D9FBA0B78dD6C7d",
          "l1Amb": "0x4C36d2919e407f0Cc2Ee3c993ccF8ac26d9CE64e",
          "l2Amb": "0x75Df5AF045d91108662D8080fD1FEFAd6aA0bb59",
          "bridgeDeployedBlockNumber": 18359713
        },
        "polygon": {
          "l1CanonicalBridge": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1MessengerWrapper": "0x26a1fDdaCfb9F6F5072eE5636ED3429101E6C069",
          "l2CanonicalBridge": "0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619",
          "l2CanonicalToken": "0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619",
          "l2Bridge": "0xb98454270065A31D71Bf635F6F7Ee6A518dFb849",
          "l2HopBridgeToken": "0x1fDeAF938267ca43388eD1FdB879eaF91e920c7A",
          "l2AmmWrapper": "0xc315239cFb05F1E130E7E28E603CEa4C014c57f0",
          "l2SaddleSwap": "0x266e2dc3C4c59E42AA07afeE5B09E964cFFe6778",
          "l2SaddleLpToken": "0x971039bF0A49c8d8A675f839739eE7a42511eC91",
          "l1FxBaseRootTunnel": "0x26a1fDdaCfb9F6F5072eE5636ED3429101E6C069",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x8484Ef722627bf18ca5Ae6BcF031c23E6e922B30",
          "l2MessengerProxy": "0xf2119C5AeB734590477EAE272990773df722B49D",
          "bridgeDeployedBlockNumber": 19706859
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xa45DF1A388049fb8d76E72D350d24E2C3F7aEBd1",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x4200000000000000000000000000000000000006",
          "l2Bridge": "0x83f6244Bd87662118d96D9a6D44f09dffF14b30E",
          "l2HopBridgeToken": "0xE38faf9040c7F09958c638bBDB977083722c5156",
          "l2AmmWrapper": "0x86cA30bEF97fB651b8d866D45503684b90cb3312",
          "l2SaddleSwap": "0xaa30D6bba6285d0585722e2440Ff89E23EF68864",
          "l2SaddleLpToken": "0x5C2048094bAaDe483D0b1DA85c3Da6200A88a849",
          "bridgeDeployedBlockNumber": 1
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xDD378a11475D588908001E0E99E4fD89ABda5434",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x82aF49447D8a07e3bd95BD0d56f35241523fBab1",
          "l2Bridge": "0x3749C4f034022c39ecafFaBA182555d4508caCCC",
          "l2HopBridgeToken": "0xDa7c0de432a9346bB6e96aC74e3B61A36d8a77eB",
          "l2AmmWrapper": "0x33ceb27b39d2Bb7D2e61F7564d3Df29344020417",
          "l2SaddleSwap": "0x652d27c0F72771Ce5C76fd400edD61B406Ac6D97",
          "l2SaddleLpToken": "0x59745774Ed5EfF903e615F5A2282Cae03484985a",
          "bridgeDeployedBlockNumber": 2135598
        },
        "nova": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x468F5E5a77C78275c3A6Df6A59fF5DBED2559F74",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x722E8BdD2ce80A4422E880164f2079488e115365",
          "l2Bridge": "0x8796860ca1677Bf5d54cE5A348Fe4b779a8212f3",
          "l2HopBridgeToken": "0xba9d3040E79Ec1e27c67fe8b184F552fE9398F07",
          "l2AmmWrapper": "0xd6bFB71b5Ad5fD378CaC15C72D8652E3b8D542c4",
          "l2SaddleSwap": "0x9908109e51D093cF17ef945Df2C62cb17cB877c4",
          "l2SaddleLpToken": "0x82f9EC21C1FB86F2B31734e27F695199E996f41E",
          "bridgeDeployedBlockNumber": 1724464
        },
        "base": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x17B5ACE1cD6b0d033431873826937F499Eec2C95",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x4200000000000000000000000000000000000006",
          "l2Bridge": "0x3666f603Cc164936C1b87e207F36BEBa4AC5f18a",
          "l2HopBridgeToken": "0xC1985d7a3429cDC85E59E2E4Fcc805b857e6Ee2E",
          "l2AmmWrapper": "0x10541b07d8Ad2647Dc6cD67abd4c03575dade261",
          "l2SaddleSwap": "0x0ce6c85cF43553DE10FC56cecA0aef6Ff0DD444d",
          "l2SaddleLpToken": "0xe9605BEc1c5C3E81F974F80b8dA9fBEFF4845d4D",
          "bridgeDeployedBlockNumber": 1397238
        },
        "linea": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x789Ac91519a3344E4845E12870F3364E7Df26D23",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xe5D7C2a44FfDDf6b295A15c148167daaAf5Cf34f",
          "l2Bridge": "0xCbb852A6274e03fA00fb4895dE0463f66dF27a11",
          "l2HopBridgeToken": "0xDc38c5aF436B9652225f92c370A011C673FA7Ba5",
          "l2AmmWrapper": "0xC8A4FB931e8D77df8497790381CA7d228E68a41b",
          "l2SaddleSwap": "0x2935173357c010F8B56c8719a44f9FbdDa90f67c",
          "l2SaddleLpToken": "0x7689674c3EcEC55086b08A3cEA785de2848d8C87",
          "bridgeDeployedBlockNumber": 794342
        },
        "polygonzk": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x2Af8821657973a9CA39248a7586fB588a4686630",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x4F9A0e7FD2Bf6067db6994CF12E4495Df938E6e9",
          "l2Bridge": "0x0ce6c85cF43553DE10FC56cecA0aef6Ff0DD444d",
          "l2HopBridgeToken": "0x652a38FA87f60A122AEF360eEeFcaf6258eDdF6A",
          "l2AmmWrapper": "0xbd72882120508518FCba2AE58E134EceaD18d979",
          "l2SaddleSwap": "0x0a6b1904369fE59E002ad0713ae89d4E3dF5A7Cf",
          "l2SaddleLpToken": "0x611c4F1539653174B05508a4169e188f9521a5bB",
          "bridgeDeployedBlockNumber": 9014486
        }
      },
      "HOP": {
        "ethereum": {
          "l1CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l1Bridge": "0x914f986a44AcB623A277d6Bd17368171FCbe4273",
          "bridgeDeployedBlockNumber": 15592825
        },
        "gnosis": {
          "l1CanonicalBridge": "0x88ad09518695c6c3712AC10a214bE5109a655671",
          "l1MessengerWrapper": "0x53B94FAf104A484ff4E7c66bFe311fd48ce3D887",
          "l2CanonicalBridge": "0xf6A78083ca3e2a662D6dd1703c939c8aCE2e268d",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x6F03052743CD99ce1b29265E377e320CD24Eb632",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "l1Amb": "0x4C36d2919e407f0Cc2Ee3c993ccF8ac26d9CE64e",
          "l2Amb": "0x75Df5AF045d91108662D8080fD1FEFAd6aA0bb59",
          "bridgeDeployedBlockNumber": 24309494
        },
        "polygon": {
          "l1CanonicalBridge": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1MessengerWrapper": "0xAa1603822b43e592e33b58d34B4423E1bcD8b4dC",
          "l2CanonicalBridge": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x58c61AeE5eD3D748a1467085ED2650B697A66234",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "l1FxBaseRootTunnel": "0xAa1603822b43e592e33b58d34B4423E1bcD8b4dC",
          "l1PosRootChainManager": "0xA0c68C638235ee32657e8f720a23ceC1bFc77C77",
          "l1PosPredicate": "0x40ec5B33f54e0E8A33A975908C5BA1c14e5BbbDf",
          "l2MessengerProxy": "0x54eBc18D68C664DA7100981dD9353566dC15f6B8",
          "bridgeDeployedBlockNumber": 33447834
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x9D3A7fB18CA7F1237F977Dc5572883f8b24F5638",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x03D7f750777eC48d39D080b020D83Eb2CB4e3547",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "bridgeDeployedBlockNumber": 24710333
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x41BF5Fd5D1C85f00fd1F23C77740F1A7eBa6A35c",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x25FB92E505F752F730cAD0Bd4fa17ecE4A384266",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "bridgeDeployedBlockNumber": 26088165
        },
        "nova": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xEbC49b236ff1920C788eF3c0687A3A1B6fCB35f1",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x02D47f76523d2f059b617E4346de67482792eB83",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "bridgeDeployedBlockNumber": 15937602
        },
        "base": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x86eD3B8AD6b721fD3a2Fa73c227987Fb9AD3D1Ae",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0xe22D2beDb3Eca35E6397e0C6D62857094aA26F52",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "bridgeDeployedBlockNumber": 1859764
        },
        "linea": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x29cFb537c004f5852F5A7ded08BE1FC3ba465850",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x0a6b1904369fE59E002ad0713ae89d4E3dF5A7Cf",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "bridgeDeployedBlockNumber": 1518790
        },
        "polygonzk": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x053Aa6D73cd1Ea062130F053c7421724754E08D8",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2Bridge": "0x9ec9551d4A1a1593b0ee8124D98590CC71b3B09D",
          "l2HopBridgeToken": "0xc5102fE9359FD9a28f877a67E36B0F050d81a3CC",
          "l2AmmWrapper": "0x0000000000000000000000000000000000000000",
          "l2SaddleSwap": "0x0000000000000000000000000000000000000000",
          "l2SaddleLpToken": "0x0000000000000000000000000000000000000000",
          "bridgeDeployedBlockNumber": 9014754
        }
      },
      "SNX": {
        "ethereum": {
          "l1CanonicalToken": "0xc011a73ee8576fb46f5e1c5751ca3b9fe0af2a6f",
          "l1Bridge": "0x893246FACF345c99e4235E5A7bbEE7404c988b96",
          "bridgeDeployedBlockNumber": 15634323
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xf0727B1eB1A4c9319A5c34A68bcD5E6530850D47",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x8700dAec35aF8Ff88c16BdF0418774CB3D7599B4",
          "l2Bridge": "0x16284c7323c35F4960540583998C98B1CfC581a7",
          "l2HopBridgeToken": "0x13B7F51BD865410c3AcC4d56083C5B56aB38D203",
          "l2AmmWrapper": "0xf11EBB94EC986EA891Aec29cfF151345C83b33Ec",
          "l2SaddleSwap": "0x1990BC6dfe2ef605Bfc08f5A23564dB75642Ad73",
          "l2SaddleLpToken": "0xe63337211DdE2569C348D9B3A0acb5637CFa8aB3",
          "bridgeDeployedBlockNumber": 26092038
        }
      },
      "sUSD": {
        "ethereum": {
          "l1CanonicalToken": "0x57Ab1ec28D129707052df4dF418D58a2D46d5f51",
          "l1Bridge": "0x36443fC70E073fe9D50425f82a3eE19feF697d62",
          "bridgeDeployedBlockNumber": 15678491
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x4Ef4C1208F7374d0252767E3992546d61dCf9848",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x8c6f28f2F1A3C87F0f938b96d27520d9751ec8d9",
          "l2Bridge": "0x33Fe5bB8DA466dA55a8A32D6ADE2BB104E2C5201",
          "l2HopBridgeToken": "0x6F03052743CD99ce1b29265E377e320CD24Eb632",
          "l2AmmWrapper": "0x29Fba7d2A6C95DB162ee09C6250e912D6893DCa6",
          "l2SaddleSwap": "0x8d4063E82A4Db8CdAed46932E1c71e03CA69Bede",
          "l2SaddleLpToken": "0xBD08972Cef7C9a5A046C9Ef13C9c3CE13739B8d6",
          "bridgeDeployedBlockNumber": 27410328
        }
      },
      "rETH": {
        "ethereum": {
          "l1CanonicalToken": "0xae78736Cd615f374D3085123A210448E74Fc6393",
          "l1Bridge": "0x87269B23e73305117D0404557bAdc459CEd0dbEc",
          "bridgeDeployedBlockNumber": 17141336
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xae26bbD1FA3083E1dae3AEaA2050b97c55886f5d",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x9Bcef72be871e61ED4fBbc7630889beE758eb81D",
          "l2Bridge": "0xA0075E8cE43dcB9970cB7709b9526c1232cc39c2",
          "l2HopBridgeToken": "0x755569159598f3702bdD7DFF6233A317C156d3Dd",
          "l2AmmWrapper": "0x19B2162CA4C2C6F08C6942bFB846ce5C396aCB75",
          "l2SaddleSwap": "0x9Dd8685463285aD5a94D2c128bda3c5e8a6173c8",
          "l2SaddleLpToken": "0x0699BC1Ca03761110929b2B56BcCBeb691fa9ca6",
          "bridgeDeployedBlockNumber": 94877802
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x7fEb7af8d5B277e249868aCF7644e7BB4A5937f8",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xEC70Dcb4A1EFa46b8F2D97C310C9c4790ba5ffA8",
          "l2Bridge": "0xc315239cFb05F1E130E7E28E603CEa4C014c57f0",
          "l2HopBridgeToken": "0x588Bae9C85a605a7F14E551d144279984469423B",
          "l2AmmWrapper": "0x16e08C02e4B78B0a5b3A917FF5FeaeDd349a5a95",
          "l2SaddleSwap": "0x0Ded0d521AC7B0d312871D18EA4FDE79f03Ee7CA",
          "l2SaddleLpToken": "0xbBA837dFFB3eCf4638D200F11B8c691eA641AdCb",
          "bridgeDeployedBlockNumber": 85020329
        }
      },
      "MAGIC": {
        "ethereum": {
          "l1CanonicalToken": "0xB0c7a3Ba49C7a6EaBa6cD4a96C55a1391070Ac9A",
          "l1Bridge": "0xf074540eb83c86211F305E145eB31743E228E57d",
          "bridgeDeployedBlockNumber": 17445930
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xa0c37738582E63B383E609624423d052BFA4b316",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x539bdE0d7Dbd336b79148AA742883198BBF60342",
          "l2Bridge": "0xEa5abf2C909169823d939de377Ef2Bf897A6CE98",
          "l2HopBridgeToken": "0xB76e673EBC922b1E8f10303D0d513a9E710f5c4c",
          "l2AmmWrapper": "0x50a3a623d00fd8b8a4F3CbC5aa53D0Bc6FA912DD",
          "l2SaddleSwap": "0xFFe42d3Ba79Ee5Ee74a999CAd0c60EF1153F0b82",
          "l2SaddleLpToken": "0x163A9E12787dBFa2836caa549aE02ed67F73e7C2",
          "bridgeDeployedBlockNumber": 99536351
        },
        "nova": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x9051Dc48d27dAb53DbAB9E844f8E48c469603938",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xe8936ac97A85d708d5312D52C30c18d4533b8A9c",
          "l2Bridge": "0xE638433e2C1dF5f7a3a21b0a6b5c4b37278e55DC",
          "l2HopBridgeToken": "0xE3B4A0a9904d75A0334893989D06814AD969d80f",
          "l2AmmWrapper": "0x40C8fdFf725b20862e22953AFfa0bBaf42D4B467",
          "l2SaddleSwap": "0xAB2D307E9563Faa3b935784fE7a32BE3868399A6",
          "l2SaddleLpToken": "0x8F0F3AA48591470F8C260E8b6E9c775cD1F02bDC",
          "bridgeDeployedBlockNumber": 11559944
        }
      }
    },
    "settings": {
      "bonders": {
        "USDC": {
          "ethereum": {
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "optimism": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "arbitrum": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "gnosis": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "polygon": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "base": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          }
        },
        "USDC.e": {
          "ethereum": {
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "optimism": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "arbitrum": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "gnosis": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "polygon": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "base": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          },
          "base": {
            "ethereum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "arbitrum": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "gnosis": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "optimism": "0xa6a688F107851131F0E1dce493EbBebFAf99203e",
            "polygon": "0xa6a688F107851131F0E1dce493EbBebFAf99203e"
          }
        },
        "USDT": {
          "ethereum": {
            "optimism": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "arbitrum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "gnosis": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "polygon": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9"
          },
          "optimism": {
            "ethereum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "arbitrum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "gnosis": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "polygon": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9"
          },
          "arbitrum": {
            "ethereum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "optimism": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "gnosis": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "polygon": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9"
          },
          "gnosis": {
            "ethereum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "arbitrum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "optimism": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "polygon": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9"
          },
          "polygon": {
            "ethereum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "arbitrum": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "gnosis": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9",
            "optimism": "0x698d6c5475e95aa821b4ed4913831b96f6680ec9"
          }
        },
        "MATIC": {
          "ethereum": {
            "gnosis": "0xd8781ca9163e9f132a4d8392332e64115688013a",
            "polygon": "0xd8781ca9163e9f132a4d8392332e64115688013a"
          },
          "gnosis": {
            "ethereum": "0xd8781ca9163e9f132a4d8392332e64115688013a",
            "polygon": "0xd8781ca9163e9f132a4d8392332e64115688013a"
          },
          "polygon": {
            "ethereum": "0xd8781ca9163e9f132a4d8392332e64115688013a",
            "gnosis": "0xd8781ca9163e9f132a4d8392332e64115688013a"
          }
        },
        "DAI": {
          "ethereum": {
            "optimism": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de ",
            "arbitrum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "gnosis": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "polygon": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de"
          },
          "optimism": {
            "ethereum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "arbitrum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "gnosis": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "polygon": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de"
          },
          "arbitrum": {
            "ethereum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "optimism": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "gnosis": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "polygon": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de"
          },
          "gnosis": {
            "ethereum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "arbitrum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "optimism": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "polygon": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de"
          },
          "polygon": {
            "ethereum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "arbitrum": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "gnosis": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de",
            "optimism": "0x10720f58Cf4A22fa540ff10430fD967d2ef102de"
          }
        },
        "ETH": {
          "ethereum": {
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "optimism": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "arbitrum": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "gnosis": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "polygon": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "nova": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "base": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "linea": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygonzk": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          },
          "polygonzk": {
            "ethereum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "arbitrum": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "gnosis": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "optimism": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "polygon": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "nova": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "base": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564",
            "linea": "0x710bDa329b2a6224E4B44833DE30F38E7f81d564"
          }
        },
        "HOP": {
          "ethereum": {
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "optimism": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "arbitrum": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "gnosis": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "polygon": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "nova": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "base": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "linea": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygonzk": "0x881296Edcb252080bd476c464cEB521d08df7631"
          },
          "polygonzk": {
            "ethereum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "arbitrum": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "gnosis": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "optimism": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "polygon": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "nova": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "base": "0x881296Edcb252080bd476c464cEB521d08df7631",
            "linea": "0x881296Edcb252080bd476c464cEB521d08df7631"
          }
        },
        "SNX": {
          "ethereum": {
            "optimism": "0x547d28cDd6A69e3366d6aE3EC39543F09Bd09417"
          },
          "optimism": {
            "ethereum": "0x547d28cDd6A69e3366d6aE3EC39543F09Bd09417"
          }
        },
        "sUSD": {
          "ethereum": {
            "optimism": "0x547d28cDd6A69e3366d6aE3EC39543F09Bd09417"
          },
          "optimism": {
            "ethereum": "0x547d28cDd6A69e3366d6aE3EC39543F09Bd09417"
          }
        },
        "rETH": {
          "ethereum": {
            "optimism": "0xD38B96277df34F1f7ac5965F86016E7d02c4Ca94",
            "arbitrum": "0xD38B96277df34F1f7ac5965F86016E7d02c4Ca94"
          },
          "optimism": {
            "ethereum": "0xD38B96277df34F1f7ac5965F86016E7d02c4Ca94",
            "arbitrum": "0xD38B96277df34F1f7ac5965F86016E7d02c4Ca94"
          },
          "arbitrum": {
            "ethereum": "0xD38B96277df34F1f7ac5965F86016E7d02c4Ca94",
            "optimism": "0xD38B96277df34F1f7ac5965F86016E7d02c4Ca94"
          }
        },
        "MAGIC": {
          "ethereum": {
            "arbitrum": "0xa251E7519cbCf76e33D4672d2218e3CbcCEB6d60",
            "nova": "0xa251E7519cbCf76e33D4672d2218e3CbcCEB6d60"
          },
          "arbitrum": {
            "ethereum": "0xa251E7519cbCf76e33D4672d2218e3CbcCEB6d60",
            "nova": "0xa251E7519cbCf76e33D4672d2218e3CbcCEB6d60"
          },
          "nova": {
            "ethereum": "0xa251E7519cbCf76e33D4672d2218e3CbcCEB6d60",
            "arbitrum": "0xa251E7519cbCf76e33D4672d2218e3CbcCEB6d60"
          }
        }
      },
      "bonderFeeBps": {
        "USDC": {
          "ethereum": 12,
          "polygon": 12,
          "gnosis": 12,
          "optimism": 12,
          "arbitrum": 12,
          "nova": 12,
          "base": 12
        },
        "USDC.e": {
          "ethereum": 12,
          "polygon": 12,
          "gnosis": 12,
          "optimism": 12,
          "arbitrum": 12,
          "nova": 12,
          "base": 12
        },
        "USDT": {
          "ethereum": 5,
          "polygon": 200,
          "gnosis": 200,
          "optimism": 200,
          "arbitrum": 200
        },
        "DAI": {
          "ethereum": 35,
          "polygon": 35,
          "gnosis": 5,
          "optimism": 35,
          "arbitrum": 35
        },
        "MATIC": {
          "ethereum": 5,
          "polygon": 50,
          "gnosis": 50,
          "optimism": 0,
          "arbitrum": 0
        },
        "ETH": {
          "ethereum": 5,
          "polygon": 20,
          "gnosis": 20,
          "optimism": 20,
          "arbitrum": 20,
          "nova": 20,
          "zksync": 20,
          "linea": 20,
          "polygonzk": 20,
          "scrollzk": 20,
          "base": 20
        },
        "WBTC": {
          "ethereum": 23,
          "polygon": 23,
          "gnosis": 25,
          "optimism": 23,
          "arbitrum": 23
        },
        "HOP": {
          "ethereum": 5,
          "polygon": 80,
          "gnosis": 80,
          "optimism": 20,
          "arbitrum": 20,
          "nova": 80,
          "base": 80,
          "linea": 80,
          "polygonzk": 80
        },
        "SNX": {
          "ethereum": 20
        },
        "sUSD": {
          "ethereum": 20
        },
        "rETH": {
          "ethereum": 5,
          "optimism": 50,
          "arbitrum": 50
        },
        "MAGIC": {
          "ethereum": 20,
          "arbitrum": 20,
          "nova": 20
        }
      },
      "destinationFeeGasPriceMultiplier": 1.9,
      "relayerFeeEnabled": {
        "polygon": false,
        "gnosis": false,
        "optimism": false,
        "arbitrum": true,
        "nova": true,
        "base": false,
        "zksync": false,
        "linea": true,
        "scrollzk": false,
        "polygonzk": true
      },
      "relayerFeeWei": {
        "linea": "100000000000000",
        "nova": "100000000000000",
        "arbitrum": "100000000000000",
        "polygonzk": "1000000000000000"
      },
      "bridgeDeprecated": {
        "SNX": true,
        "sUSD": true
      }
    }
  },
  "goerli": {
    "chains": [
      {
        "slug": "ethereum",
        "chainId": "5",
        "isL1": true,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://goerli.infura.io/v3/84842078b09946638c03157f83405213",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "polygon",
        "chainId": "80001",
        "isL1": false,
        "nativeTokenSymbol": "MATIC",
        "publicRpcUrl": "https://rpc.ankr.com/polygon_mumbai",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "optimism",
        "chainId": "420",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://goerli.optimism.io",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "arbitrum",
        "chainId": "421613",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://goerli-rollup.arbitrum.io/rpc",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "zksync",
        "chainId": "280",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://zksync2-testnet.zksync.dev",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xF9cda624FBC7e059355ce98a31693d299FACd963"
      },
      {
        "slug": "linea",
        "chainId": "59140",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://rpc.goerli.linea.build",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "scrollzk",
        "chainId": "534354",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://prealpha-rpc.scroll.io/l2",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xcA11bde05977b3631167028862bE2a173976CA11"
      },
      {
        "slug": "base",
        "chainId": "84531",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://goerli.base.org",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xca11bde05977b3631167028862be2a173976ca11"
      },
      {
        "slug": "polygonzk",
        "chainId": "1442",
        "isL1": false,
        "nativeTokenSymbol": "ETH",
        "publicRpcUrl": "https://rpc.public.zkevm-test.net",
        "fallbackPublicRpcUrls": [],
        "multicall": "0xca11bde05977b3631167028862be2a173976ca11"
      }
    ],
    "addresses": {
      "ETH": {
        "ethereum": {
          "l1CanonicalToken": "0x0000000000000000000000000000000000000000",
          "l1Bridge": "0xC8A4FB931e8D77df8497790381CA7d228E68a41b",
          "bridgeDeployedBlockNumber": 7393532
        },
        "arbitrum": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x4a55e8e407609A3046804ca500BeF6F5ebaCb6F9",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0xcb5ddfb8d0038247dc0beeecaa7f3457befcb77c",
          "l2Bridge": "0xb276BC046DFf5024D20A3947475eA20C9F08eB1F",
          "l2HopBridgeToken": "0x3F9880B2dF19aE17AdbdcD6a91a16fCd4a1A9D3D",
          "l2AmmWrapper": "0xa832293f2DCe2f092182F17dd873ae06AD5fDbaF",
          "l2SaddleSwap": "0x69a71b7F6Ff088a0310b4f911b4f9eA11e2E9740",
          "l2SaddleLpToken": "0x8DC6D9fe4500D34A405414ed27e8Eb7Fd6889267",
          "bridgeDeployedBlockNumber": 96936
        },
        "optimism": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x561285168e77f703C9B897d097D1B66a70D45687",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0xDc38c5aF436B9652225f92c370A011C673FA7Ba5",
          "l2Bridge": "0x2708E5C7087d4C6D295c8B58b2D452c360D505C7",
          "l2HopBridgeToken": "0xC8A4FB931e8D77df8497790381CA7d228E68a41b",
          "l2AmmWrapper": "0xC1985d7a3429cDC85E59E2E4Fcc805b857e6Ee2E",
          "l2SaddleSwap": "0xa50395bdEaca7062255109fedE012eFE63d6D402",
          "l2SaddleLpToken": "0x2105a73D7739f1034Becc1bd87f4F7820d575644",
          "bridgeDeployedBlockNumber": 407263
        },
        "base": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xD8534e61A609B885B84eFBF607271c782c1D1660",
          "l2CanonicalBridge": "0x4200000000000000000000000000000000000010",
          "l2CanonicalToken": "0x4200000000000000000000000000000000000006",
          "l2Bridge": "0xCB4cEeFce514B2d910d3ac529076D18e3aDD3775",
          "l2HopBridgeToken": "0x774502B60385065E16ffe1342F8a699a751585e9",
          "l2AmmWrapper": "0xCbb852A6274e03fA00fb4895dE0463f66dF27a11",
          "l2SaddleSwap": "0xB87aC009F61Fa214f196e232fD14A6f8AE422FA1",
          "l2SaddleLpToken": "0x6Ad03376a15819c80b267038E2E4c00D35Cf8f67",
          "bridgeDeployedBlockNumber": 1551608
        },
        "linea": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0xa91405Ee423a27C305A6B5f4B54d5B8bB2E8728D",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x2C1b868d6596a18e32E61B901E4060C872647b6C",
          "l2Bridge": "0x893246FACF345c99e4235E5A7bbEE7404c988b96",
          "l2HopBridgeToken": "0x8212Fb83CF51C5bd1333b5f063222E338C86F064",
          "l2AmmWrapper": "0x30ca9afabA0DA59F507756cA43619f96f176d214",
          "l2SaddleSwap": "0x1Be8d7851d64BC296e9E941F414f9a6635b5D830",
          "l2SaddleLpToken": "0x5f6Eb0641D6Bcd7352cC628B42e72901d5336822",
          "bridgeDeployedBlockNumber": 1904158
        },
        "polygonzk": {
          "l1CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l1MessengerWrapper": "0x58A3457C395E76c49cF65C25677F8E7136AF5Cc2",
          "l2CanonicalBridge": "0x0000000000000000000000000000000000000000",
          "l2CanonicalToken": "0x0EEFEe679a77dC411579e520ef7535d526cED1d6",
          "l2Bridge": "0x172cAbe34c757472249aD4Bd97560373fBbf0DA3",
          "l2HopBridgeToken": "0x97A44f0Fe5fcF7D263dE103e8bbECBefF788BE6F",
          "l2AmmWrapper": "0x115F423b958A2847af0F5bF314DB0f27c644c308",
          "l2SaddleSwap": "0xe5b6bD410caaBC232c8fAb45002d5F2912A51426",
          "l2SaddleLpToken": "0xb5E87a0Cd0dcB09308f4DB0ea56884a8005097B3",
          "bridgeDeployedBlockNumber": 3615908
        }
      }
    },
    "settings": {
      "bonders": {
        "ETH": {
          "ethereum": {
            "optimism": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "arbitrum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "base": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "linea": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "polygonzk": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7"
          },
          "optimism": {
            "ethereum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "arbitrum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "base": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "linea": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "polygonzk": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7"
          },
          "arbitrum": {
            "ethereum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "optimism": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "base": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "linea": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "polygonzk": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7"
          },
          "base": {
            "ethereum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "optimism": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "arbitrum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "linea": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "polygonzk": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7"
          },
          "linea": {
            "ethereum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "optimism": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "arbitrum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "base": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "polygonzk": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7"
          },
          "polygonzk": {
            "ethereum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "optimism": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "arbitrum": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "linea": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7",
            "base": "0x81682250D4566B2986A2B33e23e7c52D401B7aB7"
          }
        }
      },
      "bonderFeeBps": {
        "ETH": {
          "ethereum": 500,
          "polygon": 500,
          "gnosis": 500,
          "optimism": 500,
          "zksync": 500,
          "linea": 500,
          "arbitrum": 500,
          "scrollzk": 500,
          "base": 500,
          "polygonzk": 500
        },
        "HOP": {
          "ethereum": 500,
          "polygon": 500,
          "gnosis": 500,
          "optimism": 500,
          "arbitrum": 500,
          "zksync": 500,
          "linea": 500,
          "scrollzk": 500,
          "base": 500
        },
        "USDC": {
          "ethereum": 500,
          "polygon": 500,
          "gnosis": 500,
          "optimism": 500,
          "arbitrum": 500,
          "zksync": 500,
          "linea": 500,
          "scrollzk": 500,
          "base": 500
        },
        "USDT": {
          "ethereum": 500,
          "polygon": 500,
          "arbitrum": 500,
          "optimism": 500,
          "zksync": 500,
          "linea": 500,
          "scrollzk": 500,
          "base": 500
        },
        "DAI": {
          "ethereum": 500,
          "polygon": 500,
          "optimism": 500,
          "zksync": 500,
          "arbitrum": 500,
          "linea": 500,
          "scrollzk": 500,
          "base": 500
        },
        "UNI": {
          "ethereum": 500,
          "polygon": 500,
          "optimism": 500,
          "zksync": 500,
          "linea": 500,
          "scrollzk": 500,
          "arbitrum": 500,
          "base": 500
        }
      },
      "destinationFeeGasPriceMultiplier": 1.2,
      "relayerFeeEnabled": {
        "polygon": false,
        "optimism": false,
        "arbitrum": false,
        "zksync": false,
        "linea": false,
        "scrollzk": false,
        "base": false,
        "polygonzk": false
      },
      "relayerFeeWei": {
        "linea": "100000000000000"
      },
      "bridgeDeprecated": {
        "USDC": true
      }
    }
  }
};
